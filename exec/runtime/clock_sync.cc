// Questions to rank 0's clock.
#include "exec/runtime/clock_sync.h"

#include <algorithm>

namespace bubblescope {

namespace {

constexpr int kRounds = 20;
/// From rank 0's decision to the beginning: enough for all to hear of it.
constexpr Nanos kNotice = 1'000'000;
/// Instead of a time: all questions are asked.
constexpr Nanos kReady = -1;

Blob blob_of(Nanos time) {
  BlobWriter writer;
  writer.write(time);
  return writer.take();
}

Nanos time_in(const Message& message) { return BlobReader(message.payload).read<Nanos>(); }

/// Rank 0: answers as the questions come, until nobody has one.
std::optional<StepBegin> lead(Transport& transport, const GivesUp& gives_up) {
  Patience patience;
  for (std::int32_t ready = 1; ready < transport.self().count;) {
    const std::vector<Message> messages = transport.poll(Channel::kClock);
    for (const Message& message : messages)
      if (time_in(message) == kReady)
        ++ready;
      else
        transport.send(message.from, Channel::kClock, blob_of(read_monotonic_clock()));
    if (messages.empty()) {
      if (transport.first_gone() || gives_up()) return std::nullopt;
      transport.wait(patience);
    } else {
      patience = Patience();  // the next question may come at once
    }
  }
  const Nanos begin = read_monotonic_clock() + (transport.self().count > 1 ? kNotice : 0);
  transport.send_all(Channel::kClock, blob_of(begin));
  return StepBegin{begin, {}};
}

std::optional<Nanos> await_time(Transport& transport, const GivesUp& gives_up) {
  for (const Patience patience;; transport.wait(patience)) {
    for (const Message& message : transport.poll(Channel::kClock)) return time_in(message);
    if (transport.first_gone() || gives_up()) return std::nullopt;
  }
}

std::optional<StepBegin> follow(Transport& transport, const GivesUp& gives_up) {
  std::vector<ClockSample> samples;
  for (int round = 0; round < kRounds; ++round) {
    const Nanos asked = read_monotonic_clock();
    transport.send(0, Channel::kClock, blob_of(asked));
    const std::optional<Nanos> there = await_time(transport, gives_up);
    if (!there) return std::nullopt;
    samples.push_back({asked, *there, read_monotonic_clock()});
  }
  transport.send(0, Channel::kClock, blob_of(kReady));
  const std::optional<Nanos> begin = await_time(transport, gives_up);
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

std::optional<StepBegin> agree_on_begin(Transport& transport, const GivesUp& gives_up) {
  return transport.self().rank == 0 ? lead(transport, gives_up) : follow(transport, gives_up);
}

}  // namespace bubblescope
