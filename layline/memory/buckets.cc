#include "layline/memory/buckets.h"

#include <algorithm>
#include <cmath>

#include "layline/memory/parameters.h"

namespace layline::memory {

namespace {

double round_up(double value, double multiple) { return std::ceil(value / multiple) * multiple; }

}  // namespace

void Buckets::add(const Buckets& other, double count) {
  elements += count * other.elements;
  largest = std::max(largest, other.largest);
  largest_direct = std::max(largest_direct, other.largest_direct);
  norm_elements += count * other.norm_elements;
  key_elements += count * other.key_elements;
  table_elements += count * other.table_elements;
}

Buckets buckets_of(const spec::Job& job, const layout::Layout& layout, const ChunkParts& chunk) {
  const spec::Model& model = job.model;
  const double align = job.engine.bucket_alignment_bytes / (job.precision == spec::Precision::kFp32 ? 4 : 2);
  const double dp = static_cast<double>(layout.dp), t = static_cast<double>(layout.tp), n = chunk.num_layers;
  const double h = static_cast<double>(model.hidden), query = static_cast<double>(model.attention_width()) / t;
  const double key = kv_width_per_rank(model, layout.tp), inner = static_cast<double>(model.ffn_hidden) / t;
  const auto placed = [align](double elements) { return round_up(elements, align); };
  const double norm = placed(h), qkv = placed((query + 2 * key) * h);
  const bool sums_norms = layout.sp && layout.tp > 1, sums_keys = layout.tp > model.num_kv_heads;

  Buckets result;
  const auto add = [&](double count, double size) {
    if (count == 0 || size == 0) return;
    const double padded = round_up(size, align * dp);
    result.elements += count * padded;
    result.largest = std::max(result.largest, padded);
    const bool is_direct = padded * job.engine.gradient_bytes <= job.engine.reduction_direct_bytes;
    if (is_direct) result.largest_direct = std::max(result.largest_direct, padded);
  };
  double layer = placed(query * h) + placed(2 * inner * h) + placed(inner * h);
  layer += (sums_norms ? 0 : 2 * norm) + (sums_keys ? 0 : qkv);
  const bool has_longer = chunk.has_head && !sums_norms;  // the last layer's, with the final norm
  add(has_longer ? n - 1 : n, layer);
  if (has_longer) add(1, layer + norm);
  if (sums_norms) {
    const double norms = 2 * n + (chunk.has_head ? 1 : 0);
    add(1, norms * norm);
    result.norm_elements = norms * norm;
  }
  if (sums_keys) {
    add(1, n * qkv);
    result.key_elements = n * 2 * key * h;
  }
  const double table = placed(padded_vocab(model, layout.tp) / t * h);
  const bool shares_here = model.tied_embeddings && chunk.has_embedding && chunk.has_head;
  if (chunk.has_embedding) add(1, table);
  if (chunk.has_head && !shares_here) add(1, table);
  const bool is_end = chunk.has_embedding || chunk.has_head;
  if (model.tied_embeddings && layout.pp > 1 && is_end) result.table_elements = table;
  return result;
}

double reduction_scratch_bytes(const spec::Engine& engine, double elements, double element_bytes, double group_size,
                               bool is_scatter) {
  if (group_size <= 1 || engine.reduction_window == 0) return 0;
  if (!is_scatter && elements * element_bytes <= engine.reduction_direct_bytes) {
    return group_size * elements * element_bytes;
  }
  const double part = std::ceil(elements / group_size);
  const double segment = std::min(part, engine.reduction_segment_bytes / element_bytes);
  const double segments = segment == 0 ? 0 : std::ceil(part / segment);
  return std::min(segments, engine.reduction_window) * (group_size - 1) * segment * element_bytes;
}

}  // namespace layline::memory
