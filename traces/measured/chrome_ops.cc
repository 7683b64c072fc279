// Combines names with arguments.
#include "traces/measured/chrome_ops.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

/// Returns the text that names the op of a slice.
std::string_view text_of(const ChromeSlice& slice) {
  return slice.op.empty() ? slice.name : slice.op;
}

/// A word such as "forward" is an op only beside a micro-batch: many functions have that name.
std::optional<NamedOp> find_by_word(const ChromeSlice& slice) {
  if (!slice.microbatch) return {};
  const std::optional<OpKind> kind = parse_kind_word(text_of(slice));
  if (!kind) return {};
  NamedOp named{{}, false, false};
  named.op.kind = *kind;
  named.may_be_input_grad = *kind == OpKind::kBackward;
  return named;
}

/// Whether a word names the slice as the op that it is.
bool is_by_word(const ChromeSlice& slice, const std::optional<NamedOp>& named) {
  return named && !named->has_microbatch && !slice.ruled && !parse_op_name(text_of(slice));
}

/// Whether a slice within another one is what that op calls, and no op of its own: a function of
/// another name, or the part of a backward that has a slice as a whole.
bool is_called_by(const ChromeSlice& outer, OpKind outer_kind, const ChromeSlice& inner,
                  OpKind inner_kind) {
  if (inner.end > outer.end || outer.microbatch != inner.microbatch) return false;
  if (text_of(outer) == text_of(inner)) return false;
  const bool is_part = inner_kind == OpKind::kInputGrad || inner_kind == OpKind::kWeightGrad;
  return outer_kind == inner_kind || (outer_kind == OpKind::kBackward && is_part);
}

/// Whether ops may contain slices that a word names as well: if some kind has several names, or
/// backwards and their parts have one.
bool may_be_nested(const std::vector<ChromeSlice>& slices,
                   const std::vector<std::optional<NamedOp>>& ops) {
  std::map<OpKind, std::string_view> names;
  bool has_words = false;
  bool has_several = false;
  for (std::size_t at = 0; at < slices.size(); ++at) {
    if (!ops[at] || ops[at]->has_microbatch || !slices[at].microbatch) continue;
    const auto [known, is_new] = names.emplace(ops[at]->op.kind, text_of(slices[at]));
    if (is_new) has_words = has_words || is_by_word(slices[at], ops[at]);
    if (is_new || known->second == text_of(slices[at])) continue;
    has_several = true;
    has_words = has_words || is_by_word(slices[at], ops[at]);
  }
  has_several =
      has_several || (names.contains(OpKind::kBackward) &&
                      (names.contains(OpKind::kInputGrad) || names.contains(OpKind::kWeightGrad)));
  return has_words && has_several;
}

/// The slices that a word names and that another op of their micro-batch calls.
std::vector<std::size_t> find_called(const std::vector<ChromeSlice>& slices,
                                     const std::vector<std::optional<NamedOp>>& ops) {
  if (!may_be_nested(slices, ops)) return {};
  std::vector<std::size_t> order;
  for (std::size_t at = 0; at < slices.size(); ++at)
    if (ops[at]) order.push_back(at);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return std::tuple(slices[left].thread, slices[left].start, -slices[left].end) <
           std::tuple(slices[right].thread, slices[right].start, -slices[right].end);
  });
  std::vector<std::size_t> called;
  std::vector<std::size_t> open;  // ops that contain the next one, or overlap it
  for (const std::size_t at : order) {
    const ChromeSlice& slice = slices[at];
    std::erase_if(open, [&](std::size_t outer) {
      return slices[outer].thread != slice.thread || slices[outer].end <= slice.start;
    });
    const bool is_called = std::any_of(open.begin(), open.end(), [&](std::size_t outer) {
      return is_called_by(slices[outer], ops[outer]->op.kind, slice, ops[at]->op.kind);
    });
    if (is_called && is_by_word(slice, ops[at]))
      called.push_back(at);
    else
      open.push_back(at);
  }
  return called;
}

}  // namespace

std::optional<NamedOp> find_op(const ChromeSlice& slice, NameMatcher& names) {
  if (slice.ruled) return slice.ruled;
  const NameMeaning meaning =
      slice.op.empty() ? names.find(slice.name) : NameMeaning{parse_op_name(slice.op)};
  std::optional<NamedOp> named = meaning.op;
  if (!named && !meaning.is_ruled) named = find_by_word(slice);
  if (!named || named->has_stage || named->chunk || slice.chunk) return named;
  if (slice.stage && *slice.stage >= 0 && *slice.stage <= kMaxStage) {
    named->op.stage = static_cast<std::int32_t>(*slice.stage);
    named->has_stage = true;
  }
  return named;
}

FoundOps find_ops(const std::vector<ChromeSlice>& slices, NameMatcher& names) {
  FoundOps found;
  for (const ChromeSlice& slice : slices) found.ops.push_back(find_op(slice, names));
  found.not_ops = find_called(slices, found.ops);
  for (const std::size_t at : found.not_ops) found.ops[at].reset();
  std::size_t backwards = 0;
  std::vector<std::size_t> weights;
  for (std::size_t at = 0; at < slices.size(); ++at) {
    backwards += found.ops[at] && gives_input_grad(found.ops[at]->op.kind) ? 1 : 0;
    if (is_by_word(slices[at], found.ops[at]) && found.ops[at]->op.kind == OpKind::kWeightGrad)
      weights.push_back(at);
  }
  if (4 * weights.size() >= 3 * backwards) return found;
  for (const std::size_t at : weights) found.ops[at].reset();
  found.not_ops.insert(found.not_ops.end(), weights.begin(), weights.end());
  return found;
}

}  // namespace bubblescope::traces
