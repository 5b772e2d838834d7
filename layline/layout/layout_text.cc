#include "layline/layout/layout_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

#include "layline/base/error.h"
#include "layline/base/number.h"

namespace layline::layout {
namespace {

constexpr size_t kMaxWordLength = 4096;
constexpr size_t kShownLength = 60;

std::string shown(std::string_view word) {
  if (word.size() <= kShownLength) return std::string(word);
  return std::string(word.substr(0, kShownLength)) + "…";
}

struct NumberKey {
  std::string_view name;
  std::optional<int64_t> LayoutConstraints::* member;
};
constexpr std::array<NumberKey, 7> kNumberKeys = {{{"dp", &LayoutConstraints::dp},
                                                   {"tp", &LayoutConstraints::tp},
                                                   {"pp", &LayoutConstraints::pp},
                                                   {"mb", &LayoutConstraints::mb},
                                                   {"cp", &LayoutConstraints::cp},
                                                   {"ep", &LayoutConstraints::ep},
                                                   {"vp", &LayoutConstraints::vp}}};

// One word of the text, as written and taken apart: "tp2" is tp, 2; "ckpt=full" is ckpt, full with an equals sign.
struct Word {
  std::string_view text, key, value;
  bool has_equals = false;
};

Word take_apart(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals != std::string_view::npos) return {text, text.substr(0, equals), text.substr(equals + 1), true};
  size_t end = 0;
  while (end < text.size() && ((text[end] >= 'a' && text[end] <= 'z') || (text[end] >= 'A' && text[end] <= 'Z'))) ++end;
  return {text, text.substr(0, end), text.substr(end), false};
}

// Collects words into constraints; every error names the text and the word.
class ConstraintParser {
 public:
  explicit ConstraintParser(std::string_view where) : where_(where) {}

  LayoutConstraints parse(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r\n";
    for (size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
      const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
      take(take_apart(text.substr(begin, end - begin)));
      begin = text.find_first_not_of(kBlanks, end);
    }
    return result_;
  }

 private:
  [[noreturn]] void fail(const Word& word, std::string_view what) const {
    throw base::InputError(where_, fmt::format("\"{}\": {}", shown(word.text), what));
  }

  void take(const Word& word) {
    if (word.text.size() > kMaxWordLength) fail(word, "a word of a layout is shorter");
    for (const NumberKey& key : kNumberKeys) {
      if (word.key == key.name) return take_number(word, result_.*key.member);
    }
    if (word.key == "sp") return take_sp(word);
    if (word.key == "zero" || word.key == "hsdp") return take_zero(word);
    if (word.key == "ckpt") return take_checkpointing(word);
    if (word.key == "sched") return take_choice<ScheduleKind>(word, spec::kScheduleNames, result_.schedule);
    if (word.key == "split") return take_split(word);
    if (word.key == "attn") return take_choice<AttentionKernel>(word, spec::kAttentionNames, result_.attention);
    if (word.key == "norm") return take_choice<NormKernel>(word, spec::kNormNames, result_.norm);
    const std::vector<std::string> known = {"dp",   "tp",   "pp",   "mb",    "cp",    "ep",   "vp",  "sp",
                                            "zero", "hsdp", "ckpt", "sched", "split", "attn", "norm"};
    std::string nearest = base::nearest_name(word.key, known);
    if (nearest.empty()) {
      fail(word, fmt::format("no such word (known: {})", fmt::join(known, " ")));
    }
    fail(word, fmt::format("no such word (did you mean \"{}\"?)", nearest));
  }

  template <typename T>
  void want_first(const Word& word, const std::optional<T>& member) const {
    if (member) fail(word, fmt::format("{} is given twice", word.key));
  }

  int64_t number(const Word& word, std::string_view digits, int64_t lower, int64_t upper) const {
    const bool is_digits = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
    const std::optional<int64_t> value = is_digits ? base::to_whole_number(digits) : std::nullopt;
    if (!value || *value < lower || *value > upper) {
      fail(word, fmt::format("want a whole number from {} to {}", lower, upper));
    }
    return *value;
  }

  void take_number(const Word& word, std::optional<int64_t>& member) const {
    want_first(word, member);
    if (word.has_equals) fail(word, fmt::format("write {}{}", word.key, shown(word.value)));
    member = number(word, word.value, 1, kMaxAxis);
  }

  void take_sp(const Word& word) {
    want_first(word, result_.sp);
    if (word.has_equals || (!word.value.empty() && word.value != "0")) fail(word, "write sp or sp0");
    result_.sp = word.value.empty();
  }

  void take_zero(const Word& word) {
    if (word.has_equals) fail(word, fmt::format("write {}{}", word.key, shown(word.value)));
    const bool is_hybrid = word.key == "hsdp";
    if (is_hybrid ? result_.hsdp.value_or(0) > 0 : zero_is_written_) {
      fail(word, fmt::format("{} is given twice", word.key));
    }
    if (is_hybrid) {
      result_.hsdp = number(word, word.value, 1, kMaxAxis);
    } else {
      zero_is_written_ = true;
      result_.zero = static_cast<int>(number(word, word.value, 0, 3));
      result_.hsdp = result_.hsdp.value_or(0);
    }
    if (*result_.hsdp > 0) {
      if (zero_is_written_ && *result_.zero != 3) fail(word, "hsdp is ZeRO-3 inside groups; it goes with zero3 only");
      result_.zero = 3;
    }
  }

  void take_checkpointing(const Word& word) {
    want_first(word, result_.checkpointing);
    constexpr std::string_view kFullPrefix = "full:";
    result_.full_layers = 0;
    if (word.has_equals && word.value.starts_with(kFullPrefix)) {
      result_.checkpointing = Checkpointing::kFull;
      result_.full_layers = number(word, word.value.substr(kFullPrefix.size()), 1, kMaxAxis);
      return;
    }
    take_choice<Checkpointing>(word, spec::kCheckpointingNames, result_.checkpointing, "|full:K");
  }

  void take_split(const Word& word) {
    want_first(word, result_.split);
    if (!word.has_equals || word.value.empty() || word.value[0] < '0' || word.value[0] > '9') {
      return take_choice<SplitKind>(word, std::span(spec::kSplitNames).first(4), result_.split, "|21,19,…");
    }
    result_.split = SplitKind::kExplicit;
    for (size_t begin = 0; begin <= word.value.size();) {
      const size_t end = std::min(word.value.find(',', begin), word.value.size());
      result_.explicit_split.push_back(number(word, word.value.substr(begin, end - begin), 1, kMaxAxis));
      begin = end + 1;
    }
  }

  template <typename Enum>
  void take_choice(const Word& word, std::span<const std::string_view> names, std::optional<Enum>& member,
                   std::string_view more = "") const {
    want_first(word, member);
    if (!word.has_equals) fail(word, fmt::format("write {}={}{}", word.key, fmt::join(names, "|"), more));
    const auto found = std::find(names.begin(), names.end(), word.value);
    if (found == names.end()) {
      const std::string nearest = base::nearest_name(word.value, {names.begin(), names.end()});
      fail(word, nearest.empty()
                     ? fmt::format("want {}={}{}", word.key, fmt::join(names, "|"), more)
                     : fmt::format("did you mean \"{}={}\"? ({}{})", word.key, nearest, fmt::join(names, "|"), more));
    }
    member = static_cast<Enum>(found - names.begin());
  }

  std::string_view where_;
  LayoutConstraints result_;
  bool zero_is_written_ = false;
};

// dp from what is left of the GPUs, and no more GPUs than there can be.
int64_t data_parallel_size(const LayoutConstraints& given, const Layout& layout, const ParseOptions& options) {
  int64_t model_parallel = 1;
  for (const int64_t axis : {layout.tp, layout.pp, layout.cp, given.dp.value_or(1)}) {
    model_parallel *= axis;  // at most kMaxAxis², no overflow
    if (model_parallel > kMaxAxis) {
      throw base::InputError(options.where, fmt::format("dp·tp·pp·cp is more than {} GPUs", kMaxAxis));
    }
  }
  if (given.dp) return *given.dp;
  if (options.num_gpus <= 0)
    throw base::InputError(options.where, "dp is missing, and the number of GPUs is not known");
  if (options.num_gpus % model_parallel != 0) {
    throw base::InputError(options.where, fmt::format("tp{} · pp{} · cp{} = {} does not divide {} GPUs", layout.tp,
                                                      layout.pp, layout.cp, model_parallel, options.num_gpus));
  }
  return options.num_gpus / model_parallel;
}

class TextWriter {
 public:
  void number(std::string_view key, int64_t value) { word(fmt::format("{}{}", key, value)); }
  void choice(std::string_view key, std::string_view value) { word(fmt::format("{}={}", key, value)); }
  void word(std::string_view word) {
    if (!text_.empty()) text_ += ' ';
    text_ += word;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

TextDefaults text_defaults(const spec::Engine& engine) { return {.split = engine.default_split}; }

bool LayoutConstraints::matches(const Layout& layout) const {
  const auto agree = [](const auto& wanted, const auto& actual) { return !wanted || *wanted == actual; };
  return agree(dp, layout.dp) && agree(tp, layout.tp) && agree(pp, layout.pp) && agree(cp, layout.cp) &&
         agree(ep, layout.ep) && agree(vp, layout.vp) && agree(mb, layout.mb) &&
         (layout.tp == 1 || agree(sp, layout.sp)) && agree(zero, layout.zero) && agree(hsdp, layout.hsdp) &&
         agree(checkpointing, layout.checkpointing) && agree(full_layers, layout.full_layers) &&
         agree(schedule, layout.schedule) && agree(split, layout.split) && agree(attention, layout.attention) &&
         agree(norm, layout.norm) && (split != SplitKind::kExplicit || explicit_split == layout.explicit_split);
}

LayoutConstraints parse_constraints(std::string_view text, std::string_view where) {
  return ConstraintParser(where).parse(text);
}

Layout parse_layout(std::string_view text, const ParseOptions& options) {
  const LayoutConstraints given = parse_constraints(text, options.where);
  Layout layout;
  layout.tp = given.tp.value_or(1);
  layout.pp = given.pp.value_or(1);
  layout.cp = given.cp.value_or(1);
  layout.ep = given.ep.value_or(1);
  layout.vp = given.vp.value_or(1);
  layout.mb = given.mb.value_or(1);
  layout.dp = data_parallel_size(given, layout, options);
  layout.sp = given.sp.value_or(false) && layout.tp > 1;
  layout.zero = given.zero.value_or(layout.zero);
  layout.hsdp = given.hsdp.value_or(0);
  layout.checkpointing = given.checkpointing.value_or(Checkpointing::kNone);
  layout.full_layers = given.full_layers.value_or(0);
  layout.schedule = given.schedule.value_or(layout.vp > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB);
  layout.split = given.split.value_or(options.defaults.split);
  layout.explicit_split = given.explicit_split;
  layout.attention = given.attention.value_or(options.defaults.attention);
  layout.norm = given.norm.value_or(options.defaults.norm);
  return layout;
}

std::string to_text(const Layout& layout, const TextDefaults& defaults) {
  const Layout none;
  LayoutConstraints said;
  said.dp = layout.dp;
  said.tp = layout.tp;
  said.pp = layout.pp;
  said.mb = layout.mb;
  if (layout.cp != 1) said.cp = layout.cp;
  if (layout.ep != 1) said.ep = layout.ep;
  if (layout.vp != 1) said.vp = layout.vp;
  if (layout.sp && layout.tp > 1) said.sp = true;
  if (layout.zero != none.zero || layout.hsdp > 0) {
    said.zero = layout.zero;
    said.hsdp = layout.hsdp;
  }
  if (layout.checkpointing != Checkpointing::kNone) {
    said.checkpointing = layout.checkpointing;
    said.full_layers = layout.full_layers;
  }
  if (layout.schedule != (layout.vp > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB)) {
    said.schedule = layout.schedule;
  }
  if (layout.split != defaults.split) {
    said.split = layout.split;
    said.explicit_split = layout.explicit_split;
  }
  if (layout.attention != defaults.attention) said.attention = layout.attention;
  if (layout.norm != defaults.norm) said.norm = layout.norm;
  return to_text(said);
}

std::string to_text(const LayoutConstraints& constraints) {
  TextWriter out;
  for (const NumberKey& key : kNumberKeys) {
    if (const auto& value = constraints.*key.member) out.number(key.name, *value);
  }
  if (constraints.sp) out.word(*constraints.sp ? "sp" : "sp0");
  if (constraints.hsdp.value_or(0) > 0) {
    out.number("hsdp", *constraints.hsdp);
  } else if (constraints.zero) {
    out.number("zero", *constraints.zero);
  }
  if (constraints.checkpointing) {
    const int64_t layers = constraints.full_layers.value_or(0);
    const std::string_view name = name_of(*constraints.checkpointing);
    out.choice("ckpt", layers > 0 ? fmt::format("{}:{}", name, layers) : std::string(name));
  }
  if (constraints.schedule) out.choice("sched", name_of(*constraints.schedule));
  if (constraints.split) {
    out.choice("split", *constraints.split == SplitKind::kExplicit
                            ? fmt::format("{}", fmt::join(constraints.explicit_split, ","))
                            : std::string(name_of(*constraints.split)));
  }
  if (constraints.attention) out.choice("attn", name_of(*constraints.attention));
  if (constraints.norm) out.choice("norm", name_of(*constraints.norm));
  return out.take();
}

}  // namespace layline::layout
