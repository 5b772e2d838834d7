#include "layline/study/axis.h"

#include <algorithm>

#include "layline/layout/layout_text.h"

namespace layline::study {
namespace {

using layout::Layout;

bool differs(Axis axis, const Layout& a, const Layout& b) {
  switch (axis) {
    case Axis::kTensor:
      return a.tp != b.tp;
    case Axis::kPipeline:
      return a.pp != b.pp;
    case Axis::kContext:
      return a.cp != b.cp;
    case Axis::kExpert:
      return a.ep != b.ep;
    case Axis::kVirtual:
      return a.vp != b.vp;
    case Axis::kMicroBatch:
      return a.mb != b.mb;
    case Axis::kSequenceParallel:
      return a.sp != b.sp && a.tp > 1 && b.tp > 1;
    case Axis::kSharding:
      return a.zero != b.zero || a.hsdp != b.hsdp;
    case Axis::kCheckpointing:
      return a.checkpointing != b.checkpointing || a.full_layers != b.full_layers;
    case Axis::kSchedule:
      return a.schedule != b.schedule;
    case Axis::kSplit:
      return a.split != b.split || a.explicit_split != b.explicit_split;
    case Axis::kAttention:
      return a.attention != b.attention;
    case Axis::kNorm:
      return a.norm != b.norm;
    case Axis::kCount:
      break;
  }
  return false;
}

// Gives the axis the value that all layouts of a group share.
void level(Axis axis, Layout& layout) {
  const Layout plain;
  switch (axis) {
    case Axis::kTensor:
      layout.tp = plain.tp;
      layout.sp = plain.sp;
      break;
    case Axis::kPipeline:
      layout.pp = plain.pp;
      break;
    case Axis::kContext:
      layout.cp = plain.cp;
      break;
    case Axis::kExpert:
      layout.ep = plain.ep;
      break;
    case Axis::kVirtual:
      layout.vp = plain.vp;
      break;
    case Axis::kMicroBatch:
      layout.mb = plain.mb;
      break;
    case Axis::kSequenceParallel:
      layout.sp = plain.sp;
      break;
    case Axis::kSharding:
      layout.zero = plain.zero;
      layout.hsdp = plain.hsdp;
      break;
    case Axis::kCheckpointing:
      layout.checkpointing = plain.checkpointing;
      layout.full_layers = plain.full_layers;
      break;
    case Axis::kSchedule:
      layout.schedule = plain.schedule;
      break;
    case Axis::kSplit:
      layout.split = plain.split;
      layout.explicit_split.clear();
      break;
    case Axis::kAttention:
      layout.attention = plain.attention;
      break;
    case Axis::kNorm:
      layout.norm = plain.norm;
      break;
    case Axis::kCount:
      break;
  }
}

}  // namespace

std::vector<Axis> differing_axes(const Layout& a, const Layout& b) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < static_cast<size_t>(Axis::kCount); ++i) {
    if (differs(static_cast<Axis>(i), a, b)) axes.push_back(static_cast<Axis>(i));
  }
  return axes;
}

bool differ_only_in(const std::vector<Axis>& axes, const Layout& a, const Layout& b) {
  const std::vector<Axis> found = differing_axes(a, b);
  return std::all_of(found.begin(), found.end(),
                     [&](Axis axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
}

std::string text_without(const std::vector<Axis>& axes, Layout layout) {
  layout.dp = 1;
  if (layout.tp == 1) layout.sp = false;
  for (const Axis axis : axes) level(axis, layout);
  return layout::to_text(layout);
}

}  // namespace layline::study
