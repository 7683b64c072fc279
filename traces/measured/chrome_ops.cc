// Combines names with arguments.
#include "traces/measured/chrome_ops.h"

#include <utility>

#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

/// A word such as "forward" is an op only beside a micro-batch: many functions have that name.
std::optional<NamedOp> find_by_word(const ChromeSlice& slice) {
  if (!slice.microbatch) return {};
  const std::optional<OpKind> kind = parse_kind_word(slice.name);
  if (!kind) return {};
  NamedOp named{{}, false, false};
  named.op.kind = *kind;
  named.may_be_input_grad = *kind == OpKind::kBackward;
  return named;
}

/// Whether a word names the slice as an op of this kind.
bool is_by_word(const ChromeSlice& slice, const std::optional<NamedOp>& named, OpKind kind) {
  return named && named->op.kind == kind && slice.op.empty() && !slice.ruled &&
         parse_kind_word(slice.name) == kind;
}

}  // namespace

std::optional<NamedOp> find_op(const ChromeSlice& slice, NameMatcher& names) {
  if (slice.ruled) return slice.ruled;
  if (!slice.op.empty()) return parse_op_name(slice.op);
  const NameMeaning& meaning = names.find(slice.name);
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
  std::size_t backwards = 0;
  std::vector<std::size_t> weights;
  for (std::size_t at = 0; at < slices.size(); ++at) {
    backwards += found.ops[at] && gives_input_grad(found.ops[at]->op.kind) ? 1 : 0;
    if (is_by_word(slices[at], found.ops[at], OpKind::kWeightGrad)) weights.push_back(at);
  }
  if (4 * weights.size() >= 3 * backwards) return found;
  for (const std::size_t at : weights) found.ops[at].reset();
  found.not_ops = std::move(weights);
  return found;
}

}  // namespace bubblescope::traces
