// Advances from the end of one kernel to the next.
#include "tests/support/device_clock.h"

#include <algorithm>
#include <limits>

namespace bubblescope::tests {

namespace {

constexpr double kDone = 1e-6;  // in nanoseconds: tolerance for rounding

}  // namespace

std::size_t DeviceClock::add_stream(std::int32_t device) {
  streams_.push_back({device, false, {}});
  return streams_.size() - 1;
}

void DeviceClock::remove_stream(std::size_t stream) {
  streams_[stream].removed = true;
  streams_[stream].commands.clear();
  std::erase(active_, stream);
  while (!streams_.empty() && streams_.back().removed) streams_.pop_back();
}

void DeviceClock::add(std::size_t stream, const Command& command) {
  if (streams_[stream].commands.empty())
    active_.insert(std::lower_bound(active_.begin(), active_.end(), stream), stream);
  streams_[stream].commands.push_back(command);
}

void DeviceClock::run(std::size_t stream, double nanos, const SlowdownLaw* law,
                      bool counts_cycles) {
  add(stream, {Command::Kind::kRun, nanos, law, false, counts_cycles, nullptr, 0});
}

void DeviceClock::run_beside(std::size_t stream, double nanos, const SlowdownLaw& law) {
  add(stream, {Command::Kind::kRun, nanos, &law, true, false, nullptr, 0});
}

void DeviceClock::block(std::size_t stream, const volatile std::uint32_t* word) {
  add(stream, {Command::Kind::kBlock, 0, nullptr, false, false, word, 0});
}

bool DeviceClock::is_blocked() {
  advance();
  return std::any_of(active_.begin(), active_.end(), [&](std::size_t at) {
    return streams_[at].commands.front().kind == Command::Kind::kBlock;
  });
}

void DeviceClock::expire_blocks() {
  static const std::uint32_t ended = 1;
  for (Stream& stream : streams_)
    for (Command& command : stream.commands)
      if (command.kind == Command::Kind::kBlock) command.word = &ended;
}

std::int64_t DeviceClock::record(std::size_t stream) {
  marks_.emplace_back();
  const auto mark = static_cast<std::int64_t>(marks_.size()) - 1;
  add(stream, {Command::Kind::kRecord, 0, nullptr, false, false, nullptr, mark});
  return mark;
}

void DeviceClock::wait(std::size_t stream, std::int64_t mark) {
  add(stream, {Command::Kind::kWait, 0, nullptr, false, false, nullptr, mark});
}

std::optional<double> DeviceClock::time_of(std::int64_t mark) {
  advance();
  return marks_[static_cast<std::size_t>(mark)];
}

void DeviceClock::advance() {
  std::vector<double> rates;
  for (;;) {
    while (settle()) continue;
    double step = std::numeric_limits<double>::infinity();
    rates.clear();
    for (const std::size_t at : active_) {
      rates.push_back(rate_of(streams_[at]));
      if (rates.back() > 0)
        step = std::min(step, streams_[at].commands.front().left / rates.back());
    }
    if (step == std::numeric_limits<double>::infinity()) return;
    now_ += step;
    for (std::size_t at = 0; at < active_.size(); ++at)
      streams_[active_[at]].commands.front().left -= step * rates[at];
  }
}

/// Removes what has ended by now. Returns whether anything had.
bool DeviceClock::settle() {
  bool any = false;
  for (const std::size_t at : active_) any = settle(streams_[at]) || any;
  std::erase_if(active_, [this](std::size_t at) { return streams_[at].commands.empty(); });
  return any;
}

bool DeviceClock::settle(Stream& stream) {
  bool any = false;
  while (!stream.commands.empty() && has_ended(stream.commands.front())) {
    const double rest = rest_behind(stream.commands.front());
    stream.commands.pop_front();
    if (rest > 0)
      stream.commands.push_front({Command::Kind::kRun, rest, nullptr, false, false, nullptr, 0});
    any = true;
  }
  return any;
}

bool DeviceClock::has_ended(const Command& command) {
  switch (command.kind) {
    case Command::Kind::kRun: return command.left <= kDone;
    case Command::Kind::kBlock: return *command.word != 0;
    case Command::Kind::kWait: return marks_[static_cast<std::size_t>(command.mark)].has_value();
    case Command::Kind::kRecord: marks_[static_cast<std::size_t>(command.mark)] = now_; return true;
  }
  return true;
}

double DeviceClock::rest_behind(const Command& command) const {
  if (command.kind == Command::Kind::kRecord) return traits_.nanos_per_record;
  return command.kind == Command::Kind::kWait ? traits_.nanos_per_wait : 0;
}

std::int64_t DeviceClock::count_busy(std::int32_t device) const {
  return std::count_if(active_.begin(), active_.end(), [&](std::size_t at) {
    const Stream& stream = streams_[at];
    return stream.device == device && stream.commands.front().kind == Command::Kind::kRun &&
           stream.commands.front().law != nullptr && !stream.commands.front().is_beside;
  });
}

/// The progress of the stream's kernel per nanosecond; 0 if it has no kernel.
double DeviceClock::rate_of(const Stream& stream) const {
  if (stream.commands.front().kind != Command::Kind::kRun) return 0;
  const Command& command = stream.commands.front();
  const double pace = command.counts_cycles ? speed() : 1;
  if (command.law == nullptr || command.law->empty()) return pace;
  const std::int64_t others = count_busy(stream.device) - (command.is_beside ? 0 : 1);
  if (others < 1) return pace;
  return pace / (*command.law)[std::min(static_cast<std::size_t>(others), command.law->size()) - 1];
}

}  // namespace bubblescope::tests
