// Checkpoints of random weights, cut into random rectangles over random files.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "layline/trainer/checkpoint/folder.h"
#include "layline/trainer/checkpoint/shard_file.h"

namespace layline::trainer::checkpoint::test {

struct RandomCheckpoint {
  Manifest manifest;
  // By kind: the whole weight, row-major, by name.
  std::array<std::map<std::string, std::vector<float>>, kNumKinds> contents;
};

class RandomMaker {
 public:
  explicit RandomMaker(uint64_t seed) : random_(seed) {}

  int64_t up_to(int64_t largest) { return std::uniform_int_distribution<int64_t>(0, largest)(random_); }

  // Written to the folder, and committed.
  RandomCheckpoint make(const std::string& folder, int64_t num_parameters, int64_t num_files) {
    RandomCheckpoint made;
    made.manifest.step = 1 + up_to(1000);
    made.manifest.tokens = up_to(1 << 30);
    made.manifest.next_sample = up_to(1 << 20);
    made.manifest.layout = "dp1 tp1 pp1 mb1";
    made.manifest.run = "{\n  \"sequence_length\": 16\n}";
    std::vector<std::vector<ShardSlice>> files(static_cast<size_t>(num_files));
    for (int64_t i = 0; i < num_parameters; ++i) add_parameter(made, files, i);
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i].empty()) continue;
      made.manifest.files.push_back(write_shard(folder, "shard-" + std::to_string(i) + ".safetensors",
                                                formats::TensorType::kF32, files[i], {{"format", "test"}}));
    }
    commit(folder, made.manifest);
    return made;
  }

 private:
  void add_parameter(RandomCheckpoint& made, std::vector<std::vector<ShardSlice>>& files, int64_t index) {
    SavedParameter parameter{"weight." + std::to_string(index), {1 + up_to(60)}};
    if (up_to(3) != 0) parameter.shape.push_back(1 + up_to(300));
    const Box all = whole(parameter.shape);
    for (auto& of_kind : made.contents) {
      std::vector<float>& values = of_kind[parameter.name];
      for (int64_t i = 0; i < all.size(); ++i) values.push_back(std::normal_distribution<float>()(random_));
    }
    std::vector<Box> boxes;
    cut(all, boxes);
    for (const Box& box : boxes) {
      ShardSlice slice{parameter, index, box, {}};
      for (size_t kind = 0; kind < slice.contents.size(); ++kind) {
        std::vector<float>& dense = dense_.emplace_back();
        const std::vector<float>& values = made.contents[kind].at(parameter.name);
        for (int64_t row = box.first_row; row < box.end_row(); ++row) {
          const auto first = values.begin() + row * all.num_columns + box.first_column;
          dense.insert(dense.end(), first, first + box.num_columns);
        }
        slice.contents[kind] = std::as_bytes(std::span(dense));
      }
      files[static_cast<size_t>(up_to(static_cast<int64_t>(files.size()) - 1))].push_back(slice);
    }
    made.manifest.parameters.push_back(parameter);
  }

  void cut(const Box& box, std::vector<Box>& boxes) {
    const bool by_row = up_to(1) == 0;
    const int64_t size = by_row ? box.num_rows : box.num_columns;
    if (size < 2 || up_to(2) == 0) return boxes.push_back(box);
    const int64_t first = 1 + up_to(size - 2);
    Box one = box, other = box;
    (by_row ? one.num_rows : one.num_columns) = first;
    (by_row ? other.first_row : other.first_column) += first;
    (by_row ? other.num_rows : other.num_columns) -= first;
    cut(one, boxes);
    cut(other, boxes);
  }

  std::mt19937_64 random_;
  std::deque<std::vector<float>> dense_;
};

}  // namespace layline::trainer::checkpoint::test
