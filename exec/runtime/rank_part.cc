// Results of ranks to and from bytes.
#include "exec/runtime/rank_part.h"

#include <algorithm>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

/// An exception in a form that can travel.
struct Failure {
  Fault fault = Fault::kMachine;
  std::string message;
};

Failure describe(const std::exception_ptr& failure) {
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
  writer.write(result.stopped.size());
  for (const Stand& stand : result.stopped) {
    writer.write(stand.at);
    writer.write(stand.started);
    writer.write(stand.awaited.has_value());
    writer.write(stand.awaited.value_or(0));
  }
  writer.write(result.failure != nullptr);
  if (result.failure == nullptr) return writer.take();
  const Failure failure = describe(result.failure);
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
  result.reason = reader.read<Stop>();
  for (auto stands = reader.read<std::size_t>(); stands > 0; --stands) {
    Stand& stand = result.stopped.emplace_back();
    stand.at = reader.read<InstructionId>();
    stand.started = reader.read<bool>();
    const bool awaits = reader.read<bool>();
    const auto awaited = reader.read<InstructionId>();
    if (awaits) stand.awaited = awaited;
  }
  if (!reader.read<bool>()) return part;
  const auto fault = reader.read<Fault>();
  result.failure = std::make_exception_ptr(Error(fault, reader.read_text()));
  return part;
}

RankPart missing_part(std::int32_t rank, Stop reason) {
  RankPart part;
  part.result.reason = reason == Stop::kNone ? Stop::kTimeout : reason;
  part.result.failure = std::make_exception_ptr(
      Error(Fault::kMachine,
            "rank " + std::to_string(rank) + " does not answer: its process has died or hangs"));
  return part;
}

Stop find_stop(const std::vector<RankPart>& parts) {
  for (const RankPart& part : parts)
    if (part.result.reason != Stop::kNone) return part.result.reason;
  return Stop::kNone;
}

std::vector<RankPart> fail_those_gone(std::vector<RankPart> parts, const std::vector<bool>& gone) {
  const Stop stop = find_stop(parts);
  if (stop == Stop::kNone) return parts;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    RankResult& result = parts[at].result;
    if (result.failure == nullptr && gone[at])
      result.failure = missing_part(static_cast<std::int32_t>(at), stop).result.failure;
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

}  // namespace bubblescope
