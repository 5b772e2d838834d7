#include "layline/trainer/checkpoint/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <fstream>

#include "layline/base/file.h"
#include "layline/trainer/checkpoint/hashes.h"
#include "layline/trainer/formats/safetensors_files.h"
#include "tests/trainer/checkpoint/random_checkpoint.h"
#include "tests/trainer/formats/files.h"

namespace layline::trainer::checkpoint::test {
namespace {

using formats::test::input_error;
using formats::test::TemporaryFolder;
using testing::HasSubstr;

std::vector<float> read_box(const CheckpointReader& reader, Kind kind, const std::string& name, const Box& box) {
  std::vector<float> values(static_cast<size_t>(box.size()));
  reader.read(kind, name, box, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<float> part_of(const std::vector<float>& values, int64_t num_columns, const Box& box) {
  std::vector<float> part;
  for (int64_t row = box.first_row; row < box.end_row(); ++row) {
    for (int64_t column = box.first_column; column < box.end_column(); ++column) {
      part.push_back(values[static_cast<size_t>(row * num_columns + column)]);
    }
  }
  return part;
}

RC_GTEST_PROP(CheckpointReader, FindsEveryRectangleHoweverTheFilesWereCut, ()) {
  const TemporaryFolder folder;
  RandomMaker maker(*rc::gen::arbitrary<uint64_t>());
  const RandomCheckpoint made = maker.make(folder.path(), 4, 3);
  const CheckpointReader reader(folder.path());
  RC_ASSERT(reader.manifest() == made.manifest);
  for (const SavedParameter& parameter : made.manifest.parameters) {
    const Box all = whole(parameter.shape);
    for (size_t kind = 0; kind < kNumKinds; ++kind) {
      Box box{maker.up_to(all.num_rows - 1), maker.up_to(all.num_columns - 1), 0, 0};
      box.num_rows = 1 + maker.up_to(all.num_rows - box.first_row - 1);
      box.num_columns = 1 + maker.up_to(all.num_columns - box.first_column - 1);
      const std::vector<float>& values = made.contents[kind].at(parameter.name);
      RC_ASSERT(read_box(reader, static_cast<Kind>(kind), parameter.name, box) ==
                part_of(values, all.num_columns, box));
      RC_ASSERT(read_box(reader, static_cast<Kind>(kind), parameter.name, all) == values);
    }
  }
  for (size_t i = 0; i < made.manifest.files.size(); ++i) reader.verify_file(i);
}

// Everything that the checkpoint has, as a program would read it.
void read_all(const std::string& folder) {
  const CheckpointReader reader(folder);
  for (const SavedParameter& parameter : reader.manifest().parameters) {
    for (const Kind kind : {Kind::kWeight, Kind::kExpAvg, Kind::kExpAvgSq}) {
      read_box(reader, kind, parameter.name, whole(parameter.shape));
    }
  }
  for (size_t i = 0; i < reader.manifest().files.size(); ++i) reader.verify_file(i);
}

RC_GTEST_PROP(CheckpointReader, RefusesEveryDamageByName, ()) {
  const TemporaryFolder folder;
  RandomMaker maker(*rc::gen::arbitrary<uint64_t>());
  const RandomCheckpoint made = maker.make(folder.path(), 2, 2);
  read_all(folder.path());
  std::vector<std::string> names = {std::string(kManifestName)};
  for (const SavedFile& file : made.manifest.files) names.push_back(file.name);
  for (const std::string& name : names) {
    const std::string path = folder.file(name), good = base::read_file(path);
    const auto last = static_cast<int64_t>(good.size()) - 1;
    for (int trial = 0; trial < 4; ++trial) {
      std::string bad = good;
      if (trial % 2 == 0) {
        bad[static_cast<size_t>(maker.up_to(last))] ^= static_cast<char>(1 << maker.up_to(7));
      } else {
        bad.resize(static_cast<size_t>(maker.up_to(last)));
      }
      folder.write(name, bad);
      RC_ASSERT(input_error([&] { read_all(folder.path()); }).find(name) != std::string::npos);
    }
    folder.write(name, good + "x");
    RC_ASSERT(input_error([&] { read_all(folder.path()); }).find(name) != std::string::npos);
    folder.write(name, good);
    read_all(folder.path());
  }
}

// Two files of 8 MiB and 1 MiB: one of many blocks.
struct Large {
  explicit Large(const std::string& folder) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191);
    manifest.parameters = {{"w", {2048, 1024}}};
    manifest.run = "{}";
    manifest.has_moments = false;
    ShardSlice slice{manifest.parameters[0], 0, whole(manifest.parameters[0].shape), {}};
    slice.contents[0] = std::as_bytes(std::span(values));
    manifest.files = {write_shard(folder, "shard", formats::TensorType::kF32, {slice}, {})};
    commit(folder, manifest);
  }
  std::vector<float> values = std::vector<float>(size_t{2048} * 1024);
  Manifest manifest;
};

TEST(CheckpointReader, ReadsLittleMoreThanItIsAskedFor) {
  const TemporaryFolder folder;
  const Large large(folder.path());
  const CheckpointReader reader(folder.path());
  const Box rows{1001, 0, 300, 1024};
  EXPECT_EQ(read_box(reader, Kind::kWeight, "w", rows), part_of(large.values, 1024, rows));
  const int64_t wanted = rows.size() * static_cast<int64_t>(sizeof(float));
  const SavedFile& file = reader.manifest().files[0];
  EXPECT_GE(reader.bytes_read(), wanted);
  EXPECT_LE(reader.bytes_read(), wanted + 2 * kBlockBytes + file.header_bytes + 8 * file.num_hashes);
}

TEST(CheckpointReader, DamageElsewhereDoesNotMatter) {
  const TemporaryFolder folder;
  const Large large(folder.path());
  std::string bytes = base::read_file(folder.file("shard"));
  const auto begin = static_cast<size_t>(large.manifest.files[0].slices[0].begin_bytes[0]);
  bytes[begin + (1 << 20)] ^= 1;  // row 256
  folder.write("shard", bytes);
  const CheckpointReader reader(folder.path());
  EXPECT_NO_THROW(read_box(reader, Kind::kWeight, "w", {0, 0, 200, 1024}));
  EXPECT_THAT(input_error([&] { read_box(reader, Kind::kWeight, "w", {200, 5, 100, 7}); }),
              HasSubstr("shard: is damaged: bytes "));
}

TEST(CheckpointReader, MomentsThatWereNotSavedAreZero) {
  const TemporaryFolder folder;
  const Large large(folder.path());
  const CheckpointReader reader(folder.path());
  EXPECT_EQ(read_box(reader, Kind::kExpAvgSq, "w", {0, 0, 1, 3}), std::vector<float>(3, 0.0F));
}

TEST(CheckpointReader, MissingFilesAreNamed) {
  const TemporaryFolder folder;
  const Large large(folder.path());
  std::filesystem::remove(folder.file("shard"));
  EXPECT_THAT(input_error([&] { CheckpointReader{folder.path()}; }), HasSubstr("shard: cannot read: No such file"));
  EXPECT_THAT(input_error([&] { CheckpointReader{folder.file("none")}; }),
              HasSubstr("none/manifest.json: cannot read"));
}

TEST(Shards, AreSafetensorsFiles) {
  const TemporaryFolder folder;
  RandomMaker maker(5);
  const RandomCheckpoint made = maker.make(folder.path(), 3, 1);
  const formats::SafetensorsFiles files = formats::open_safetensors(folder.file(made.manifest.files[0].name));
  const SavedSlice& slice = made.manifest.files[0].slices[0];
  const SavedParameter& parameter = made.manifest.parameters[static_cast<size_t>(slice.parameter)];
  const formats::PlacedTensor& tensor = files.tensors.at(tensor_name(Kind::kExpAvg, parameter.name, slice.box));
  EXPECT_EQ(tensor.entry.begin_bytes, slice.begin_bytes[1]);
  EXPECT_EQ(files.tensors.at(std::string(kHashesName)).entry.begin_bytes, made.manifest.files[0].hashes_begin_bytes);
}

TEST(Shards, ThatCannotBeWrittenLeaveNothing) {
  const TemporaryFolder folder;
  std::vector<float> values(100);
  ShardSlice slice{{"w", {100}}, 0, {0, 0, 100, 1}, {}};
  slice.contents[0] = std::as_bytes(std::span(values));
  EXPECT_THROW(write_shard(folder.file("none"), "shard", formats::TensorType::kF32, {slice}, {}), base::RunError);
  EXPECT_THROW(write_shard(folder.path(), "shard", formats::TensorType::kF32, {slice}, {}, [] { return true; }),
               base::RunError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace layline::trainer::checkpoint::test
