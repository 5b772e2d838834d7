// A few layouts, file by file: golden/ has what they were last seen to be. LAYLINE_WRITE_GOLDEN=1 writes them anew.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "layline/base/error.h"
#include "layline/layout/layout_text.h"
#include "tests/export/draws.h"

namespace layline::exporting {
namespace {

namespace fs = std::filesystem;

struct Case {
  Framework framework;
  const char *model, *cluster;
  int64_t num_gpus, global_batch, sequence_length;
  const char* layout;
  Launcher launcher;
};

const Case kCases[] = {
    {Framework::kMegatron, "llama-3.1-70b", "h100-80gb", 128, 512, 8192, "tp4 pp4 cp2 mb1 vp2 sp ckpt=selective",
     Launcher::kSlurm},
    {Framework::kNemo, "llama-3.1-8b", "h100-80gb", 16, 128, 8192, "tp2 pp2 mb1 sp split=17,15", Launcher::kTorchrun},
    {Framework::kTorchtitan, "llama-3.1-8b", "h100-80gb", 64, 256, 8192, "tp2 pp2 mb2 sp zero2 ckpt=full",
     Launcher::kSlurm},
    {Framework::kNanotron, "llama-3-8b", "h100-80gb", 32, 256, 4096, "tp4 pp1 mb2 sp ckpt=full", Launcher::kSlurm},
    {Framework::kDeepspeed, "llama-13b", "a100-80gb", 64, 512, 2048, "tp2 pp4 mb2 ckpt=full attn=fused-softmax",
     Launcher::kTorchrun},
    {Framework::kLayline, "llama-tiny", "cpu", 4, 32, 256, "tp2 pp2 mb4 sp", Launcher::kTorchrun}};

spec::Job job_of(const Case& one) {
  spec::Job job;
  job.model = spec::get_model(one.model);
  job.cluster = spec::get_cluster(one.cluster);
  job.engine = engine_for(one.framework);
  job.num_gpus = one.num_gpus;
  job.global_batch = one.global_batch;
  job.sequence_length = one.sequence_length;
  return job;
}

std::string text_in(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Titles come from model files, which may be anybody's.
TEST(Golden, ATitleCannotAddLinesToWhatIsRun) {
  for (const Case& one : kCases) {
    spec::Job job = job_of(one);
    job.model.title = "mine\necho harm\r\nimport harm";
    if (one.framework == Framework::kTorchtitan) job.model.name = "a\"] = harm(\"";
    const Layout layout = layout::parse_layout(
        one.layout, {.num_gpus = job.num_gpus, .defaults = layout::text_defaults(job.engine), .where = one.layout});
    for (const LaunchFile& file : launch_files(job, layout, one.framework, {.launcher = one.launcher}).files) {
      EXPECT_EQ(file.text.find("\necho harm"), std::string::npos) << file.name;
      EXPECT_EQ(file.text.find("\rimport harm"), std::string::npos) << file.name;
      EXPECT_EQ(file.text.find("\"a\"]"), std::string::npos) << file.name;
    }
  }
}

TEST(Golden, FilesAreAsTheyWere) {
  const bool writes = std::getenv("LAYLINE_WRITE_GOLDEN") != nullptr;
  for (const Case& one : kCases) {
    const spec::Job job = job_of(one);
    const Layout layout = layout::parse_layout(
        one.layout, {.num_gpus = job.num_gpus, .defaults = layout::text_defaults(job.engine), .where = one.layout});
    const LaunchFiles files = launch_files(job, layout, one.framework, {.launcher = one.launcher});
    for (const LaunchFile& file : files.files) {
      const fs::path path = fs::path(LAYLINE_SOURCE_DIR) / "tests/export/golden" / name_of(one.framework) / file.name;
      if (writes) {
        fs::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << file.text;
      }
      EXPECT_EQ(file.text, text_in(path)) << path;
    }
  }
}

}  // namespace
}  // namespace layline::exporting
