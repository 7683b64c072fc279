// Letters of a step.
#include "exec/nccl/step_link.h"

#include <algorithm>
#include <utility>

#include "exec/step_control.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

struct Control {
  ControlHeader header;
  std::string failure;  ///< why a process cannot go on
};

Blob to_bytes(const Control& control) {
  BlobWriter writer;
  writer.write(control.header);
  writer.write_text(control.failure.substr(0, kLongestText));
  return writer.take();
}

std::string name_of(std::int32_t rank) { return "rank " + std::to_string(rank); }

/// Throws Error where a process cannot go on.
ControlHeader read(const ProcessLink::Letter& letter) {
  BlobReader reader(letter.payload);
  const auto header = reader.read<ControlHeader>();
  const std::string failure = reader.read_text();
  if (failure.empty()) return header;
  throw Error(Fault::kMachine, name_of(letter.from) + " cannot go on: " + failure);
}

}  // namespace

/// Of no step.
void show_life(ProcessLink& link) { link.send_all(Line::kControl, to_bytes(Control{})); }

void StepLink::open_step() {
  ++step_;
  begin_.reset();
  stopped_ = Stop::kNone;
  deadline_.reset();
  news_at_ = read_monotonic_clock();
}

OutsideNews StepLink::listen(std::size_t ended) {
  OutsideNews news;
  for (const ProcessLink::Letter& letter : link_.look(Line::kControl)) {
    const ControlHeader header = read(letter);
    news.goes_on = true;
    if (header.step == step_ && header.stop != Stop::kNone) stopped_ = news.stop = header.stop;
  }
  const Nanos now = read_monotonic_clock();
  if (news.goes_on) news_at_ = now;
  expect_all();
  if (ended == shown_ || now - shown_at_ < limits_.timeout / kShownPerTimeout) return news;
  shown_ = ended;
  shown_at_ = now;
  link_.send_all(Line::kControl, to_bytes({{step_, Stop::kNone}, {}}));
  return news;
}

void StepLink::expect_all() const {
  if (const auto gone = link_.first_gone())
    throw Error(Fault::kMachine, name_of(*gone) + " is gone: its process has died, or left");
}

void StepLink::watch() {
  if (listen(shown_).stop != Stop::kNone)
    throw Error(Fault::kMachine, "another rank stopped the step");
  if (is_interrupted()) {
    stopped_ = Stop::kInterrupt;
    throw Error(Fault::kMachine, "interrupted");
  }
  if (read_monotonic_clock() - news_at_ <= limits_.timeout) return;
  stopped_ = Stop::kTimeout;
  throw Error(Fault::kMachine, "the other ranks do not answer within --timeout");
}

void StepLink::await_begin() {
  const auto agreed = agree_on_begin(link_, [this] { return gives_up(); });
  if (!agreed) {
    listen(shown_);
    if (stopped_ == Stop::kNone) stopped_ = is_interrupted() ? Stop::kInterrupt : Stop::kTimeout;
    throw Error(Fault::kMachine, "the step did not begin");
  }
  begin_ = agreed;
  StepClock clock;
  clock.start(agreed->time);
  clock.pass_until(0);
}

std::vector<RankPart> StepLink::gather(const RankPart& own) {
  const Stop reason = own.result.reason;
  news_at_ = read_monotonic_clock();
  if (reason != Stop::kNone) {
    link_.send_all(Line::kControl, to_bytes({{step_, reason}, {}}));
    deadline_ = news_at_ + grace(grace_of(reason));
  }
  std::vector<RankPart> parts;
  for (const auto& bytes : link_.share(bubblescope::to_bytes(own), [this] { return gives_up(); }))
    parts.push_back(bytes ? read_part(*bytes)
                          : missing_part(static_cast<std::int32_t>(parts.size()), reason));
  return fail_those_gone(std::move(parts),
                         [this](std::int32_t rank) { return link_.had_gone(rank); });
}

std::vector<Blob> StepLink::share(Blob own) {
  news_at_ = read_monotonic_clock();
  std::vector<Blob> all;
  for (std::optional<Blob>& bytes : link_.share(std::move(own), [this] { return gives_up(); })) {
    if (!bytes)
      throw Error(Fault::kMachine, name_of(static_cast<std::int32_t>(all.size())) +
                                       " does not answer: its process has died or hangs");
    all.push_back(std::move(*bytes));
  }
  return all;
}

void StepLink::tell_failure(const std::string& what) {
  link_.send_all(Line::kControl, to_bytes({{step_, Stop::kFailure}, what}));
  const Nanos end = read_monotonic_clock() + kShortStopGrace;
  link_.flush([end] { return read_monotonic_clock() > end; });
}

/// Rank 0 waits for the others first, and they for what it has heard.
Nanos StepLink::grace(Nanos of_first) const {
  return link_.seat().rank == 0 ? of_first : of_first * 3 / 2;
}

/// While this process has nothing to do but to wait for others.
bool StepLink::gives_up() {
  for (const ProcessLink::Letter& letter : link_.look(Line::kControl)) {
    const ControlHeader header = read(letter);
    news_at_ = read_monotonic_clock();
    if (header.stop == Stop::kNone || header.step != step_) continue;
    if (!deadline_) deadline_ = news_at_ + grace(kStopGrace);
    stopped_ = header.stop;
  }
  const Nanos now = read_monotonic_clock();
  if (is_interrupted())
    deadline_ =
        std::min(deadline_.value_or(now + grace(kShortStopGrace)), now + grace(kShortStopGrace));
  if (deadline_) return now > *deadline_;
  return now - news_at_ > limits_.timeout + grace(kStopGrace);
}

}  // namespace bubblescope
