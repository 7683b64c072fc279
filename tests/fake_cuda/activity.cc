// Records when tasks ran.
#include "tests/fake_cuda/activity.h"

#include <mutex>
#include <utility>

namespace bubblescope::tests::fake_cuda {

namespace {

struct Notes {
  std::mutex mutex;
  std::vector<Activity> activities;
  bool are_taken = false;
  std::uint32_t correlations = 0;
};

Notes& notes() {
  static auto& instance = *new Notes;
  return instance;
}

}  // namespace

void begin_to_observe() {
  const std::lock_guard lock(notes().mutex);
  notes().are_taken = true;
}

std::vector<std::uint64_t>& external_ids() {
  thread_local std::vector<std::uint64_t> pushed;
  return pushed;
}

/// Events and other tasks without work leave no records.
void observe(Task& task, const Stream& stream) {
  const std::lock_guard lock(notes().mutex);
  if (!notes().are_taken || (!task.work && !task.spin)) return;
  Activity activity{
      task.name, 0, 0, task.bytes, stream.device, stream.number, ++notes().correlations, {}};
  if (!external_ids().empty()) activity.external_ids = {external_ids().back()};
  task.ended = [activity](Nanos begin, Nanos end) mutable {
    activity.begin = begin;
    activity.end = end;
    const std::lock_guard ending(notes().mutex);
    notes().activities.push_back(std::move(activity));
  };
}

std::vector<Activity> take_activities() {
  const std::lock_guard lock(notes().mutex);
  return std::exchange(notes().activities, {});
}

}  // namespace bubblescope::tests::fake_cuda
