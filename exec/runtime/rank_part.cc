// Converts the results of ranks to bytes and back.
#include "exec/runtime/rank_part.h"

#include <algorithm>

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// An exception in a form that can be sent.
struct Failure {
  Fault fault = Fault::kMachine;
  std::string message;
};

Failure to_failure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return {error.fault(), error.what()};
  } catch (const std::exception& error) {
    return {Fault::kMachine, error.what()};
  }
}

}  // namespace

Blob to_bytes(const RankPart& part) {
  BlobWriter writer;
  const RankResult& result = part.result;
  writer.write_all(result.spans);
  writer.write_all(part.arrivals);
  writer.write(result.reason);
  writer.write(result.blocked.size());
  for (const BlockedAt& blocked : result.blocked) {
    writer.write(blocked.at);
    writer.write(blocked.started);
    writer.write(blocked.awaited.has_value());
    writer.write(blocked.awaited.value_or(0));
  }
  writer.write(result.failure != nullptr);
  if (result.failure == nullptr) return writer.take();
  const Failure failure = to_failure(result.failure);
  writer.write(failure.fault);
  writer.write_text(failure.message);
  return writer.take();
}

RankPart read_part(const Blob& bytes) {
  BlobReader reader(bytes);
  RankPart part;
  RankResult& result = part.result;
  result.spans = reader.read_all<Span>();
  part.arrivals = reader.read_all<Span>();
  result.reason = reader.read<AbortReason>();
  for (auto count = reader.read<std::size_t>(); count > 0; --count) {
    BlockedAt& blocked = result.blocked.emplace_back();
    blocked.at = reader.read<InstructionId>();
    blocked.started = reader.read<bool>();
    const bool awaits = reader.read<bool>();
    const auto awaited = reader.read<InstructionId>();
    if (awaits) blocked.awaited = awaited;
  }
  if (!reader.read<bool>()) return part;
  const auto fault = reader.read<Fault>();
  result.failure = std::make_exception_ptr(Error(fault, reader.read_text()));
  return part;
}

RankPart missing_part(std::int32_t rank, AbortReason reason) {
  RankPart part;
  part.result.reason = reason == AbortReason::kNone ? AbortReason::kTimeout : reason;
  part.result.failure = std::make_exception_ptr(
      Error(Fault::kMachine,
            "rank " + std::to_string(rank) + " does not answer: its process has died or hangs"));
  return part;
}

AbortReason find_abort_reason(const std::vector<RankPart>& parts) {
  for (const RankPart& part : parts)
    if (part.result.reason != AbortReason::kNone) return part.result.reason;
  return AbortReason::kNone;
}

std::vector<RankPart> fail_gone_ranks(std::vector<RankPart> parts, const std::vector<bool>& gone) {
  const AbortReason abort_reason = find_abort_reason(parts);
  if (abort_reason == AbortReason::kNone) return parts;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    RankResult& result = parts[at].result;
    if (result.failure == nullptr && gone[at])
      result.failure = missing_part(static_cast<std::int32_t>(at), abort_reason).result.failure;
  }
  return parts;
}

std::vector<RankResult> take_results(std::vector<RankPart> parts) {
  std::vector<RankResult> results;
  for (RankPart& part : parts) results.push_back(std::move(part.result));
  return results;
}

void set_arrivals(std::vector<RankPart>& parts, const Program& program) {
  std::vector<Nanos> arrival(program.size(), 0);
  for (const RankPart& part : parts)
    for (const Span& span : part.arrivals) arrival.at(span.id) = span.end;
  for (RankPart& part : parts)
    for (Span& span : part.result.spans) span.end = std::max(span.end, arrival.at(span.id));
}

}  // namespace bubblescope::exec
