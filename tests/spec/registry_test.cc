#include "layline/spec/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/spec/texts.h"

namespace layline::spec::test {
namespace {

using testing::HasSubstr;

class Folder {
 public:
  Folder() : path_(std::filesystem::path(testing::TempDir()) / fmt::format("layline-spec-{}", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string file = (path_ / name).string();
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
    return file;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(Registry, NamesAndAliasesAreFoundInAnyCase) {
  EXPECT_EQ(get_model("LLAMA-13B").name, "llama-13b");
  EXPECT_EQ(get_model("meta-llama/Llama-3.1-8B").name, "llama-3.1-8b");
  EXPECT_EQ(get_gpu("h100").name, "h100-80gb");
  EXPECT_EQ(get_gpu("nvidia a100-sxm4-80gb").name, "a100-80gb");
  EXPECT_EQ(get_cluster("a100-80gb").name, "a100-80gb");
  EXPECT_EQ(get_cluster("A100-80GB SXM").name, "a100-80gb");
  EXPECT_EQ(get_cluster("dgx-h100").name, "h100-80gb");
  EXPECT_EQ(get_cluster("h200").name, "h200-141gb");
  EXPECT_EQ(get_engine("Megatron-Core").name, "megatron-core");
}

TEST(Registry, UnknownNamesAreToldTheNearest) {
  EXPECT_THAT(error_of([] { get_model("lama-13b"); }),
              HasSubstr("no model \"lama-13b\" (did you mean \"llama-13b\"?)"));
  EXPECT_THAT(error_of([] { get_model("lama-13b"); }), HasSubstr("Hugging Face config.json"));
  EXPECT_THAT(error_of([] { get_cluster("a100-80g"); }), HasSubstr("did you mean \"a100-80gb\"?"));
  EXPECT_THAT(error_of([] { get_gpu("h10"); }), HasSubstr("did you mean \"h100\"?"));
  EXPECT_THAT(error_of([] { get_engine("deepspeed"); }), HasSubstr("layline specs list"));
  EXPECT_THAT(error_of([] { get_model("no/such/file.json"); }), HasSubstr("no/such/file.json"));
  EXPECT_THAT(error_of([] { get_model(""); }), HasSubstr("no model \"\""));
  EXPECT_THAT(error_of([] { get_model(std::string(100000, 'x')); }), HasSubstr("no model"));
}

TEST(Registry, FilesAreReadFromTheirPath) {
  const Folder folder;
  const std::string gpu_text = with(shipped(SpecKind::kGpu, "h100-80gb"), "\"num_sms\": 132", "\"num_sms\": 7");
  EXPECT_EQ(get_gpu(folder.write("mine.json", gpu_text)).num_sms, 7);
  const std::string cluster =
      with(shipped(SpecKind::kCluster, "h100-80gb"), "\"gpu\": \"h100-80gb\"", "\"gpu\": " + gpu_text);
  EXPECT_EQ(get_cluster(folder.write("mine-too.json", cluster)).gpu.num_sms, 7);
  EXPECT_THAT(error_of([&] { get_engine(folder.write("bad.json", "{\"name\": 3}")); }),
              HasSubstr("bad.json: $.name: found 3"));
}

TEST(Registry, HugeFilesAreRefused) {
  const Folder folder;
  const std::string file = folder.write("huge.json", std::string(9 << 20, ' '));
  EXPECT_THAT(error_of([&] { get_model(file); }), HasSubstr("larger than"));
}

TEST(Registry, AFolderMeansItsConfig) {
  const Folder folder;
  folder.write("my-llama/config.json", R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100})");
  for (const std::string& path : {folder.path() + "/my-llama", folder.path() + "/my-llama/config.json"}) {
    EXPECT_EQ(get_model(path).name, "my-llama");
    EXPECT_EQ(get_model(path).num_layers, 2);
  }
}

TEST(Registry, RunRecordsFindTheirCluster) {
  struct Row {
    const char* hardware;
    const char* interconnect;
    const char* cluster;
  };
  // Every pair that the published runs have.
  const Row rows[] = {
      {"A100-80GB SXM", "NVLink3; 4x100 Gbps OmniPath per node (Jean Zay)", "a100-80gb-jean-zay"},
      {"V100-32GB", "NVLink2; OmniPath (Jean Zay V100)", "v100-32gb"},
      {"V100-16GB", "NVLink2; OmniPath (Jean Zay V100)", "v100-16gb"},
      {"A100-80GB SXM", "NVLink intra-node; InfiniBand inter-node", "a100-80gb"},
      {"A100-80GB SXM", "1600 Gbps node-node RoCE", "a100-80gb-roce"},
      {"A100-40GB SXM", "1600 Gbps node-node RoCE", "a100-40gb-roce"},
      {"GB200", "", "gb200"},
      {"A100-80GB SXM", "", "a100-80gb"},
      {"H100-80GB SXM", "", "h100-80gb"},
      {"H100-80GB SXM", "NVLink; InfiniBand (not stated in table)", "h100-80gb"},
      {"A100-80GB SXM", "NVLink/NVSwitch; 8x HDR InfiniBand per node (Selene)", "a100-80gb"},
      {"A100-80GB SXM", "NVLink/NVSwitch; HDR InfiniBand (Selene)", "a100-80gb"},
      {"A100 SXM (memory size not stated)", "NVLink/NVSwitch", "a100-80gb"},
      {"A100 SXM (memory size not stated)", "NVLink/NVSwitch; 800 Gbps IB per node (4x HDR) per config",
       "a100-80gb-4xhdr"},
      {"H100-80GB SXM", "NVLink intra-node; EFA inter-node", "h100-80gb-efa"},
      {"h100-80gb sxm", "nvlink; efa", "h100-80gb-efa"},
      {"H100-80GB SXM", "DGX-H100 (NVLink4; 8x400Gb NDR)", "h100-80gb"},
      {"B200", "", "b200"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(cluster_for_hardware(row.hardware, row.interconnect).name, row.cluster)
        << row.hardware << " " << row.interconnect;
  }
  EXPECT_THAT(error_of([] { cluster_for_hardware("A100-80GB SMX", ""); }), HasSubstr("did you mean"));
}

TEST(Registry, AnswersRunRecordsByTheThousand) {
  cluster_for_hardware("A100-80GB SXM", "");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 4000; ++i) cluster_for_hardware("A100-80GB SXM", "NVLink intra-node; InfiniBand inter-node");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Registry, MayBeAskedFromManyThreads) {
  std::atomic<int> num_right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&] { num_right += get_cluster("h100").gpu.num_sms == 132 && get_model("llama-65b").num_layers == 80; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_right, 8);
}

TEST(Calibrations, NoneIsTheAnalyticDefaults) {
  const Calibration none = get_calibration("none");
  EXPECT_FALSE(none.is_fitted());
  const Coefficients values = none.coefficients();
  for (const CoefficientInfo& info : coefficient_table())
    EXPECT_EQ(values.*(info.member), info.default_value) << info.name;
}

TEST(Calibrations, AreFoundByEngineAndFamilyOrNotAtAll) {
  Engine engine = get_engine("aleph-scaling");
  engine.name = "nobody's";
  EXPECT_EQ(default_calibration(engine, get_gpu("a100-80gb")).name, "none");
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind != SpecKind::kCalibration) continue;
    const Calibration calibration = get_calibration(std::string(spec.name));
    EXPECT_NO_THROW(get_engine(calibration.engine)) << spec.name;
    EXPECT_FALSE(calibration.sources.empty()) << spec.name;
  }
}

TEST(Calibrations, DefaultsLieWithinTheirBounds) {
  for (const CoefficientInfo& info : coefficient_table()) {
    EXPECT_LE(info.lower, info.default_value) << info.name;
    EXPECT_GE(info.upper, info.default_value) << info.name;
    EXPECT_EQ(find_coefficient(info.name), &info);
  }
}

TEST(Calibrations, SurviveJsonToTheLastBit) {
  Calibration before;
  before.name = "x \"quoted\" é";
  before.engine = "layline";
  before.gpu = "a100-80gb";
  before.sources = {"a.csv (3 rows)"};
  before.num_timed_runs = 346;
  before.relative_error_bar = 1.0 / 3.0;
  before.memory_relative_sigma = 0.1 + 0.2;
  before.left_out = {{"13B 2k", 12, 0.1, 1e-17}};
  for (const CoefficientInfo& info : coefficient_table()) {
    before.values[std::string(info.name)] = info.lower + (info.upper - info.lower) / 3.0;
  }
  const Calibration after = parse_calibration(to_json(before), "x.json");
  EXPECT_EQ(after.values, before.values);
  EXPECT_EQ(after.name, before.name);
  EXPECT_EQ(after.sources, before.sources);
  EXPECT_EQ(after.relative_error_bar, before.relative_error_bar);
  EXPECT_EQ(after.memory_relative_sigma, before.memory_relative_sigma);
  ASSERT_EQ(after.left_out.size(), 1u);
  EXPECT_EQ(after.left_out[0].median_abs_relative_error, 1e-17);
  EXPECT_EQ(to_json(after), to_json(before));
}

}  // namespace
}  // namespace layline::spec::test
