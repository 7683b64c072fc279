// Threads take configurations from a shared counter.
#include "tools/plan/sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "tools/flags/words.h"
#include "tools/interrupt.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

constexpr std::int32_t kMaxNumber = 1 << 24;
constexpr std::int64_t kMaxNumbers = 100'000;
constexpr std::size_t kBatch = 16;  ///< configurations that a thread takes at a time

std::int32_t parse_range_number(const std::string& digits, const std::string& whole) {
  const bool number = !digits.empty() && digits.size() < 9 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  const std::int32_t value = number ? std::stoi(digits) : 0;
  if (value < 1 || value > kMaxNumber)
    throw Error("'" + whole +
                "' is not a list of numbers; write 4, or 1,2,4, or 2..16, 8..128:8 (steps of 8), "
                "8..128x2 (doubling)");
  return value;
}

std::vector<std::int32_t> numbers_of(const std::string& range) {
  const std::size_t dots = range.find("..");
  if (dots == std::string::npos) return {parse_range_number(range, range)};
  const std::size_t step_at = range.find_first_of(":x", dots);
  const std::int32_t first = parse_range_number(range.substr(0, dots), range);
  const std::int32_t last = parse_range_number(range.substr(dots + 2, step_at - dots - 2), range);
  const bool multiplies = step_at != std::string::npos && range[step_at] == 'x';
  const std::int32_t step =
      step_at == std::string::npos ? 1 : parse_range_number(range.substr(step_at + 1), range);
  if (first > last) throw Error("'" + range + "' goes down; write the smaller number first");
  if (multiplies && step < 2) throw Error("'" + range + "' never ends; multiply by 2 or more");
  if (!multiplies && (std::int64_t{last} - first) / step >= kMaxNumbers)
    throw Error(fmt::format("'{}' has more than {}; take larger steps", range,
                            counted(kMaxNumbers, "number")));
  std::vector<std::int32_t> numbers;
  for (std::int64_t number = first; number <= last;
       number = multiplies ? number * step : number + step)
    numbers.push_back(static_cast<std::int32_t>(number));
  return numbers;
}

/// The state that the threads of one sweep share.
class SharedSweep {
 public:
  SharedSweep(const std::vector<Configuration>& configurations, const MakeEvaluate& make_evaluate,
              const SweepOptions& options)
      : configurations_(configurations),
        make_evaluate_(make_evaluate),
        options_(options),
        outcomes_(configurations.size()) {}

  void work() {
    try {
      const Evaluate evaluate = make_evaluate_();
      while (!failed_ && !is_interrupted() && take_batch(evaluate)) {
      }
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!failed_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  std::vector<Outcome> finish() && {
    if (failure_) std::rethrow_exception(failure_);
    if (done_ < configurations_.size()) throw InterruptedSweep{done_};
    return std::move(outcomes_);
  }

 private:
  bool take_batch(const Evaluate& evaluate) {
    const std::size_t begin = next_.fetch_add(kBatch);
    if (begin >= configurations_.size()) return false;
    const std::size_t last = std::min(begin + kBatch, configurations_.size());
    check_interrupt();
    std::size_t end = begin;
    for (; end < last && !is_interrupted(); ++end) outcomes_[end] = evaluate(configurations_[end]);
    const std::size_t done = done_.fetch_add(end - begin) + end - begin;
    std::unique_lock lock(mutex_, std::defer_lock);
    if (options_.record) {
      lock.lock();
      options_.record(begin, std::span(outcomes_).subspan(begin, end - begin));
    } else if (!lock.try_lock()) {
      return true;
    }
    if (options_.progress) options_.progress(done, configurations_.size());
    return true;
  }

  const std::vector<Configuration>& configurations_;
  const MakeEvaluate& make_evaluate_;
  const SweepOptions& options_;
  std::vector<Outcome> outcomes_;  ///< each written by one thread
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> done_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

void draw_bar(std::size_t done, std::size_t all) {
  constexpr std::size_t kWidth = 40;
  const std::size_t filled = kWidth * done / all;
  draw_progress(fmt::format("\r{}{} {} of {}", std::string(filled, '#'),
                            std::string(kWidth - filled, '.'), done,
                            counted(all, "configuration")));
  if (done == all) draw_progress("\r\x1b[K");
}

}  // namespace

std::vector<std::int32_t> parse_numbers(const std::string& text) {
  std::set<std::int32_t> numbers;
  for (const std::string& range : split(text, ','))
    for (const std::int32_t number : numbers_of(range)) numbers.insert(number);
  return {numbers.begin(), numbers.end()};
}

std::vector<Outcome> sweep(const std::vector<Configuration>& configurations,
                           const MakeEvaluate& make_evaluate, const SweepOptions& options) {
  SharedSweep shared(configurations, make_evaluate, options);
  {
    std::vector<std::jthread> others;
    for (std::int32_t thread = 1; thread < options.threads; ++thread)
      others.emplace_back([&shared] { shared.work(); });
    shared.work();
  }
  std::vector<Outcome> outcomes = std::move(shared).finish();
  if (options.progress && !configurations.empty())
    options.progress(configurations.size(), configurations.size());
  return outcomes;
}

ReportProgress make_progress_bar() {
  if (isatty(STDERR_FILENO) == 0) return {};
  using Clock = std::chrono::steady_clock;
  const auto drawn = std::make_shared<Clock::time_point>(Clock::now());
  return [drawn](std::size_t done, std::size_t all) {
    if (done < all && Clock::now() - *drawn < std::chrono::milliseconds(100)) return;
    *drawn = Clock::now();
    draw_bar(done, all);
  };
}

}  // namespace bubblescope::tools
