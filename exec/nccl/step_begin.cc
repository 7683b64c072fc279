// Questions to rank 0's clock.
#include "exec/nccl/step_begin.h"

#include <vector>

#include "exec/clock_offset.h"
#include "exec/step_clock.h"

namespace bubblescope {

namespace {

constexpr int kRounds = 8;
/// From rank 0's decision to the beginning: enough for all to hear of it.
constexpr Nanos kNotice = 1'000'000;
/// Instead of a time: all questions are asked.
constexpr Nanos kReady = -1;

Blob blob_of(Nanos time) {
  BlobWriter writer;
  writer.write(time);
  return writer.take();
}

Nanos time_in(const ProcessLink::Letter& letter) {
  return BlobReader(letter.payload).read<Nanos>();
}

/// Rank 0: answers as the questions come, until nobody has one.
std::optional<StepBegin> lead(ProcessLink& link, const ProcessLink::GivesUp& gives_up) {
  for (std::int32_t ready = 1; ready < link.seat().count;) {
    const std::vector<ProcessLink::Letter> letters = link.look(Line::kClock);
    for (const ProcessLink::Letter& letter : letters)
      if (time_in(letter) == kReady)
        ++ready;
      else
        link.send(letter.from, Line::kClock, blob_of(read_monotonic_clock()));
    if (!letters.empty()) continue;
    if (link.first_gone() || gives_up()) return std::nullopt;
    link.wait();
  }
  const Nanos begin = read_monotonic_clock() + (link.seat().count > 1 ? kNotice : 0);
  link.send_all(Line::kClock, blob_of(begin));
  return StepBegin{begin, {}};
}

std::optional<Nanos> await_time(ProcessLink& link, const ProcessLink::GivesUp& gives_up) {
  for (;;) {
    for (const ProcessLink::Letter& letter : link.look(Line::kClock)) return time_in(letter);
    if (link.first_gone() || gives_up()) return std::nullopt;
    link.wait();
  }
}

std::optional<StepBegin> follow(ProcessLink& link, const ProcessLink::GivesUp& gives_up) {
  std::vector<ClockSample> samples;
  for (int round = 0; round < kRounds; ++round) {
    const Nanos asked = read_monotonic_clock();
    link.send(0, Line::kClock, blob_of(asked));
    const std::optional<Nanos> there = await_time(link, gives_up);
    if (!there) return std::nullopt;
    samples.push_back({asked, *there, read_monotonic_clock()});
  }
  link.send(0, Line::kClock, blob_of(kReady));
  const std::optional<Nanos> begin = await_time(link, gives_up);
  if (!begin) return std::nullopt;
  const ClockOffset clock{find_clock_offset(samples), (quickest(samples).took() + 1) / 2};
  return StepBegin{*begin + clock.ahead, clock};
}

}  // namespace

std::optional<StepBegin> agree_on_begin(ProcessLink& link, const ProcessLink::GivesUp& gives_up) {
  return link.seat().rank == 0 ? lead(link, gives_up) : follow(link, gives_up);
}

}  // namespace bubblescope
