// Combines names with arguments.
#include "traces/measured/chrome_ops.h"

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

}  // namespace bubblescope::traces
