// Clock sync: rank 0 answers with its time, the others compute their offsets.
#include "exec/runtime/clock_sync.h"

#include <algorithm>

namespace bubblescope::exec {

namespace {

constexpr int kRounds = 20;
/// The time from rank 0's message to the beginning of the step, long enough for all to receive it.
constexpr Nanos kNotice = 1'000'000;
/// Sent instead of a time when a process has all its samples.
constexpr Nanos kReady = -1;

Nanos time_in(const Message& message) { return BlobReader(message.payload).read<Nanos>(); }

/// Rank 0: replies to requests until every other process is ready.
std::optional<StepBegin> lead(Transport& transport, const ShouldAbort& should_abort) {
  PollBackoff backoff;
  for (std::int32_t ready = 1; ready < transport.self().count;) {
    const std::vector<Message> messages = transport.poll(MessageTag::kClock);
    for (const Message& message : messages)
      if (time_in(message) == kReady)
        ++ready;
      else
        transport.send(message.from, MessageTag::kClock, blob_of(read_monotonic_clock()));
    if (messages.empty()) {
      if (transport.first_gone() || should_abort()) return std::nullopt;
      transport.wait(backoff);
    } else {
      backoff = PollBackoff();  // the next request may come at once
    }
  }
  const Nanos begin = read_monotonic_clock() + (transport.self().count > 1 ? kNotice : 0);
  transport.send_all(MessageTag::kClock, blob_of(begin));
  return StepBegin{begin, {}};
}

std::optional<Nanos> await_time(Transport& transport, const ShouldAbort& should_abort) {
  for (const PollBackoff backoff;; transport.wait(backoff)) {
    for (const Message& message : transport.poll(MessageTag::kClock)) return time_in(message);
    if (transport.first_gone() || should_abort()) return std::nullopt;
  }
}

std::optional<StepBegin> follow(Transport& transport, const ShouldAbort& should_abort) {
  std::vector<ClockSample> samples;
  for (int round = 0; round < kRounds; ++round) {
    const Nanos asked = read_monotonic_clock();
    transport.send(0, MessageTag::kClock, blob_of(asked));
    const std::optional<Nanos> there = await_time(transport, should_abort);
    if (!there) return std::nullopt;
    samples.push_back({asked, *there, read_monotonic_clock()});
  }
  transport.send(0, MessageTag::kClock, blob_of(kReady));
  const std::optional<Nanos> begin = await_time(transport, should_abort);
  if (!begin) return std::nullopt;
  const ClockOffset clock = find_clock_offset(samples);
  return StepBegin{*begin + clock.ahead, clock};
}

}  // namespace

ClockOffset find_clock_offset(const std::vector<ClockSample>& samples) {
  const ClockSample quickest = *std::min_element(
      samples.begin(), samples.end(),
      [](const ClockSample& left, const ClockSample& right) { return left.took() < right.took(); });
  return {quickest.asked + quickest.took() / 2 - quickest.there, (quickest.took() + 1) / 2};
}

std::optional<StepBegin> agree_on_begin(Transport& transport, const ShouldAbort& should_abort) {
  return transport.self().rank == 0 ? lead(transport, should_abort)
                                    : follow(transport, should_abort);
}

}  // namespace bubblescope::exec
