// The text form of layouts: `dp16 tp2 pp2 mb1 sp ckpt=full`.
//
//   Layout layout = parse_layout("tp2 pp2 mb1 sp", {.num_gpus = 64, .defaults = text_defaults(engine)});   // dp16
//   to_text(layout, text_defaults(engine));                                                // "dp16 tp2 pp2 mb1 sp"
//   LayoutConstraints fixed = parse_constraints("tp2 sp");   // of --fix: all else is free
//   fixed.matches(layout);
//
// Words are separated by blanks and come in any order: axes dp tp pp cp ep vp and the micro-batch mb with a number;
// sp, sp0; zero0 to zero3, hsdp8; ckpt=none|selective|full|full:K; sched=1f1b|interleaved|gpipe|zb;
// split=even|uniform|balanced|threshold|21,19; attn=flash2|flash1|fused-softmax|unfused; norm=fused|unfused.
// Errors are base::InputError: which word, what is allowed, the nearest known word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/spec/engine.h"

namespace layline::layout {

inline constexpr int64_t kMaxAxis = 1'000'000;  // of any axis, the micro-batch, and the number of GPUs

// What a full layout means where it says nothing. All other defaults are those of Layout (and sched=interleaved when
// vp > 1).
struct TextDefaults {
  SplitKind split = SplitKind::kEven;
  AttentionKernel attention = AttentionKernel::kFlash2;
  NormKernel norm = NormKernel::kFused;
};

// The engine's split; kernels stay flash2 and fused, whatever the engine prefers, so that a text means the same kernels
// everywhere.
TextDefaults text_defaults(const spec::Engine& engine);

struct ParseOptions {
  int64_t num_gpus = 0;  // dp follows from it when it is not written; 0: dp must be written
  TextDefaults defaults = {};
  std::string_view where = "layout";  // names the text in errors
};

// Some members of a layout; what is not set is free.
struct LayoutConstraints {
  std::optional<int64_t> dp, tp, pp, cp, ep, vp, mb;
  std::optional<bool> sp;
  std::optional<int> zero;
  std::optional<int64_t> hsdp;  // set with zero: 0 for zero0 to zero3, 8 for hsdp8
  std::optional<Checkpointing> checkpointing;
  std::optional<int64_t> full_layers;  // set with checkpointing
  std::optional<ScheduleKind> schedule;
  std::optional<SplitKind> split;
  std::vector<int64_t> explicit_split;  // when split is kExplicit
  std::optional<AttentionKernel> attention;
  std::optional<NormKernel> norm;

  // At tp 1 any sp matches: there sequence parallelism changes nothing, and layouts never say it.
  bool matches(const Layout& layout) const;
  bool operator==(const LayoutConstraints&) const = default;
};

// A full layout. Numbers are in range but the layout need not be legal for any job, nor dp for num_gpus when dp is
// written. Throws base::InputError, also when tp·pp·cp does not divide num_gpus and dp must follow from it.
Layout parse_layout(std::string_view text, const ParseOptions& options = {});

// The partial form; "" fixes nothing.
LayoutConstraints parse_constraints(std::string_view text, std::string_view where = "--fix");

// The canonical text: dp tp pp mb, then what differs from the defaults in the order cp ep vp, sp, zero or hsdp, ckpt,
// sched, split, attn, norm. parse_layout gives the same layout back (with the same defaults).
std::string to_text(const Layout& layout, const TextDefaults& defaults = {});

// What is fixed, in the same order.
std::string to_text(const LayoutConstraints& constraints);

}  // namespace layline::layout
