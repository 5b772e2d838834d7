// All files of specs/: they parse, are called as they should be, and every number has a source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/spec/texts.h"

namespace layline::spec::test {
namespace {

using nlohmann::json;

TEST(ShippedSpecs, AllParse) {
  for (const ShippedSpec& spec : shipped_specs()) {
    EXPECT_NO_THROW(parse(spec.kind, spec.json, std::string(spec.name)));
  }
}

TEST(ShippedSpecs, AreTheFilesOfTheSourceTree) {
  std::set<std::string> files, shipped;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LAYLINE_SOURCE_DIR "/specs")) {
    if (entry.path().extension() == ".json") files.insert(entry.path().stem().string());
  }
  for (const ShippedSpec& spec : shipped_specs()) shipped.emplace(spec.name);
  EXPECT_EQ(shipped, files);
}

TEST(ShippedSpecs, AreNamedLikeTheirFiles) {
  for (const ShippedSpec& spec : shipped_specs()) {
    EXPECT_EQ(json::parse(spec.json).at("name").get<std::string>(), spec.name);
  }
}

TEST(ShippedSpecs, EveryNumberHasASource) {
  int num_numbers = 0;
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind == SpecKind::kCalibration) continue;  // they name the runs they were fitted to
    const json object = json::parse(spec.json);
    const json sources = object.value("sources", json::object());
    const bool one_for_all = sources.contains("*") || !object.value("source", "").empty();
    for (const auto& [key, value] : object.items()) {
      if (!value.is_number()) continue;
      ++num_numbers;
      EXPECT_TRUE(one_for_all || sources.contains(key)) << spec.name << ": " << key;
    }
    for (const auto& [key, source] : sources.items()) {
      EXPECT_TRUE(key == "*" || object.contains(key)) << spec.name << ": source of nothing: " << key;
      EXPECT_GT(source.get<std::string>().size(), 8u) << spec.name << ": " << key;
    }
  }
  EXPECT_GT(num_numbers, 500);
}

TEST(ShippedSpecs, NoNameOrAliasMeansTwoThings) {
  std::map<SpecKind, std::map<std::string, std::string>> owners;
  for (const ShippedSpec& spec : shipped_specs()) {
    const json object = json::parse(spec.json);
    std::set<std::string> names = {std::string(spec.name)};
    for (const json& alias : object.value("aliases", json::array())) {
      std::string text = alias.get<std::string>();
      for (char& c : text) c = static_cast<char>(std::tolower(c));
      names.insert(text);
    }
    for (const std::string& name : names) {
      const auto [at, is_new] = owners[spec.kind].emplace(name, spec.name);
      EXPECT_TRUE(is_new || at->second == spec.name) << name << " is " << at->second << " and " << spec.name;
    }
  }
}

TEST(ShippedSpecs, EveryGpuHasAClusterOfItsName) {
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind != SpecKind::kGpu) continue;
    const Gpu gpu = get_gpu(std::string(spec.name));
    const Cluster cluster = get_cluster(gpu.name);
    EXPECT_EQ(cluster.name, gpu.name);
    EXPECT_EQ(cluster.gpu.name, gpu.name);
    for (const std::string& alias : gpu.aliases) EXPECT_EQ(get_cluster(alias).gpu.name, gpu.name) << alias;
  }
}

TEST(ShippedSpecs, NoNodeIsFasterThanItsGpusLinks) {
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind != SpecKind::kCluster) continue;
    const Cluster cluster = get_cluster(std::string(spec.name));
    const double link = std::max(cluster.gpu.nvlink_bytes_per_second, cluster.gpu.pcie_bytes_per_second);
    EXPECT_LE(cluster.intra_bytes_per_second, link) << cluster.name;
    EXPECT_LE(cluster.inter_bytes_per_second_per_gpu, cluster.inter_bytes_per_second_per_node) << cluster.name;
    EXPECT_LE(cluster.inter_bytes_per_second_per_node, cluster.inter_bytes_per_second_per_gpu * cluster.gpus_per_node)
        << cluster.name;
    EXPECT_LE(cluster.inter_bytes_per_second_per_gpu, cluster.intra_bytes_per_second) << cluster.name;
  }
}

// Dense peaks in TFLOP/s as the vendors publish them; with another dtype's or sparsity's number in its place MFU is
// wrong by a factor.
struct Peaks {
  const char* gpu;
  double bf16, fp16, fp8;
  double memory_gib;
  double memory_gb_per_second;
};

TEST(ShippedGpus, HaveTheVendorsDensePeaks) {
  const Peaks table[] = {
      {"v100-16gb", 0, 125, 0, 16, 900},
      {"v100-32gb", 0, 125, 0, 32, 900},
      {"a100-40gb", 312, 312, 0, 40, 1555},
      {"a100-80gb", 312, 312, 0, 80, 2039},
      {"a100-80gb-pcie", 312, 312, 0, 80, 1935},
      {"a800-80gb", 312, 312, 0, 80, 2039},
      {"h100-80gb", 989.4, 989.4, 1979, 80, 3350},
      {"h100-pcie", 756, 756, 1513, 80, 2039},
      {"h100-nvl", 835, 835, 1671, 94, 3938},
      {"h800-80gb", 989.4, 989.4, 1979, 80, 3350},
      {"h20-96gb", 148, 148, 296, 96, 4000},
      {"h200-141gb", 989.4, 989.4, 1979, 141, 4800},
      {"b200", 2250, 2250, 4500, 180, 8000},
      {"gb200", 2500, 2500, 5000, 186, 8000},
      {"gb300", 2500, 2500, 5000, 279, 8000},
      {"mi250x", 191.5, 191.5, 0, 64, 1638},
      {"mi300x", 1307, 1307, 2615, 192, 5300},
      {"mi325x", 1307, 1307, 2615, 256, 6000},
      {"mi355x", 2516, 2516, 5033, 288, 8000},
      {"l4", 121, 121, 242, 24, 300},
      {"l40s", 362, 362, 733, 48, 864},
      {"rtx-3090", 71, 71, 0, 24, 936},
      {"rtx-4090", 165.2, 165.2, 330.3, 24, 1008},
  };
  for (const Peaks& row : table) {
    const Gpu gpu = get_gpu(row.gpu);
    EXPECT_NEAR(gpu.peak_flops_per_second(Precision::kBf16) / 1e12, row.bf16, 0.002 * row.bf16) << row.gpu;
    EXPECT_NEAR(gpu.peak_flops_per_second(Precision::kFp16) / 1e12, row.fp16, 0.002 * row.fp16) << row.gpu;
    EXPECT_NEAR(gpu.peak_flops_per_second(Precision::kFp8) / 1e12, row.fp8, 0.003 * row.fp8) << row.gpu;
    EXPECT_NEAR(gpu.memory_bytes_per_second / 1e9, row.memory_gb_per_second, 0.05 * row.memory_gb_per_second)
        << row.gpu;
    // Usable memory is what is left of the nominal size, and never more.
    EXPECT_LE(gpu.memory_bytes, row.memory_gib * 1073741824.0) << row.gpu;
    EXPECT_GE(gpu.memory_bytes, 0.9 * row.memory_gib * 1073741824.0) << row.gpu;
  }
}

TEST(ShippedGpus, UsableMemoryOfTheA100IsWhatTheDriverReports) {
  EXPECT_NEAR(get_gpu("a100-80gb").memory_bytes / 1073741824.0, 79.15, 0.005);
}

TEST(ShippedEngines, HaveWhatTheirFlagsSay) {
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind != SpecKind::kEngine) continue;
    const Engine engine = get_engine(std::string(spec.name));
    const auto has = [&](ScheduleKind kind) {
      return std::count(engine.schedules.begin(), engine.schedules.end(), kind) > 0;
    };
    EXPECT_EQ(has(ScheduleKind::kInterleaved), engine.has_virtual_stages) << engine.name;
    EXPECT_TRUE(has(ScheduleKind::kOneFOneB)) << engine.name;
    EXPECT_TRUE(engine.has_tensor_parallel || !engine.has_sequence_parallel) << engine.name;
    EXPECT_TRUE(engine.has_sequence_parallel || !engine.sequence_parallel_always) << engine.name;
    EXPECT_TRUE(std::is_sorted(engine.zero_stages.begin(), engine.zero_stages.end())) << engine.name;
    const bool zero3 = std::count(engine.zero_stages.begin(), engine.zero_stages.end(), 3) > 0;
    EXPECT_TRUE(zero3 || !engine.has_hybrid_sharding) << engine.name;
  }
}

TEST(ShippedEngines, BehaveAsTheirPublicCodeDoes) {
  const Engine aleph = get_engine("aleph-scaling");
  EXPECT_EQ(aleph.gradient_bytes, 2);
  EXPECT_EQ(aleph.reduction, GradientReduction::kAllReduce);
  EXPECT_EQ(aleph.bucket_elements, 5e8);
  EXPECT_EQ(aleph.logits, Logits::kGathered);
  EXPECT_EQ(aleph.logits_live_bytes, 21);
  EXPECT_EQ(aleph.default_split, SplitKind::kUniform);
  EXPECT_FALSE(aleph.overlaps_gradient_reduction);
  EXPECT_EQ(aleph.attention_kernels.size(), 4u);
  const Engine core = get_engine("megatron-core");
  EXPECT_EQ(core.weight_bytes + core.gradient_bytes + core.optimizer_bytes, 18);
  EXPECT_TRUE(core.overlaps_gradient_reduction && core.has_context_parallel && core.has_virtual_stages);
  EXPECT_TRUE(get_engine("nanotron").sequence_parallel_always);
  for (const char* name : {"llm-foundry", "torchtitan"}) {
    const Engine engine = get_engine(name);
    EXPECT_THAT(engine.zero_stages, testing::Contains(3)) << name;
    EXPECT_TRUE(engine.has_hybrid_sharding) << name;
  }
  EXPECT_FALSE(get_engine("llm-foundry").has_tensor_parallel);
}

}  // namespace
}  // namespace layline::spec::test
