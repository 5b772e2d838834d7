// Every name that a shipped spec goes by finds that spec, through the functions that programs call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "tests/spec/texts.h"

namespace layline::spec::test {
namespace {

template <typename Spec>
void expect_found(const Spec& spec, Spec (*get)(const std::string&), std::vector<std::string> names) {
  names.push_back(spec.name);
  for (const std::string& name : names) {
    std::string upper = name;
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
    EXPECT_EQ(get(name).name, spec.name) << name;
    EXPECT_EQ(get(upper).name, spec.name) << upper;
  }
}

TEST(Aliases, FindTheirOwnSpec) {
  for (const ShippedSpec& shipped : shipped_specs()) {
    const std::string name(shipped.name);
    if (shipped.kind == SpecKind::kModel) expect_found(get_model(name), get_model, get_model(name).aliases);
    if (shipped.kind == SpecKind::kGpu) expect_found(get_gpu(name), get_gpu, get_gpu(name).aliases);
    if (shipped.kind == SpecKind::kCluster) expect_found(get_cluster(name), get_cluster, get_cluster(name).aliases);
    if (shipped.kind == SpecKind::kEngine) expect_found(get_engine(name), get_engine, {});
  }
}

TEST(Aliases, OfNetworksChooseTheirOwnCluster) {
  for (const ShippedSpec& shipped : shipped_specs()) {
    if (shipped.kind != SpecKind::kCluster) continue;
    const Cluster cluster = get_cluster(std::string(shipped.name));
    for (const std::string& part : cluster.interconnect_aliases) {
      EXPECT_EQ(cluster_for_hardware(cluster.gpu.name, part).name, cluster.name) << part;
    }
  }
}

// One letter changed in the middle of a name: the error shows a name that is near, and it is one that exists.
TEST(Aliases, MisspeltNamesAreToldOneThatExists) {
  for (const ShippedSpec& shipped : shipped_specs()) {
    if (shipped.kind == SpecKind::kCalibration || shipped.name.size() < 4) continue;
    std::string misspelt(shipped.name);
    misspelt[misspelt.size() / 2] = '~';
    const std::string message = error_of([&] {
      switch (shipped.kind) {
        case SpecKind::kModel:
          get_model(misspelt);
          break;
        case SpecKind::kGpu:
          get_gpu(misspelt);
          break;
        case SpecKind::kCluster:
          get_cluster(misspelt);
          break;
        default:
          get_engine(misspelt);
      }
    });
    EXPECT_THAT(message, testing::HasSubstr("did you mean \"")) << shipped.name;
  }
}

TEST(Precisions, ThatAGpuLacksHaveNoPeak) {
  for (const char* name : {"v100-16gb", "v100-32gb"}) {
    EXPECT_EQ(get_gpu(name).peak_flops_per_second(Precision::kBf16), 0) << name;
    EXPECT_EQ(get_gpu(name).peak_flops_per_second(Precision::kFp8), 0) << name;
    EXPECT_GT(get_gpu(name).peak_flops_per_second(Precision::kFp16), 0) << name;
  }
  for (const char* name : {"a100-40gb", "a100-80gb", "a800-80gb", "rtx-3090", "mi250x"}) {
    EXPECT_EQ(get_gpu(name).peak_flops_per_second(Precision::kFp8), 0) << name;
  }
}

}  // namespace
}  // namespace layline::spec::test
