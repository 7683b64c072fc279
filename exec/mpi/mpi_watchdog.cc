// Waits while MPI works, and inspects the processes of this host.
#include "exec/mpi/mpi_watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/runtime/step_clock.h"

namespace bubblescope::exec {

namespace {

namespace fs = std::filesystem;

/// The delay between the reports of two ranks, so that usually only the lowest rank reports.
constexpr Nanos kTurn = 200'000'000;
constexpr std::chrono::milliseconds kPollInterval{20};
constexpr Nanos kCheckInterval = 500'000'000;
/// If the watchdog wakes this late, the process itself was suspended.
constexpr Nanos kStopped = 2'000'000'000;

/// The variables by which launchers set the rank, and the job.
constexpr std::array<std::string_view, 4> kRankNames{
    "OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK=", "SLURM_PROCID="};
constexpr std::string_view kJobName = "PMIX_NAMESPACE=";

/// The entries of a process's environment; none if it cannot be read.
std::vector<std::string> read_environment(const fs::path& process) {
  std::ifstream file(process / "environ", std::ios::binary);
  std::vector<std::string> entries;
  for (std::string entry; std::getline(file, entry, '\0');) entries.push_back(entry);
  return entries;
}

std::optional<std::string> find_entry(const std::vector<std::string>& environment,
                                      std::string_view name) {
  for (const std::string& entry : environment)
    if (entry.rfind(name, 0) == 0) return entry.substr(name.size());
  return std::nullopt;
}

std::optional<std::string> find_rank(const std::vector<std::string>& environment) {
  for (const std::string_view name : kRankNames)
    if (auto rank = find_entry(environment, name)) return rank;
  return std::nullopt;
}

/// Returns a field of a process's `status` file, without leading blanks.
std::string read_status(const fs::path& process, std::string_view field) {
  std::ifstream file(process / "status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(field, 0) == 0) {
      const std::size_t begin = line.find_first_not_of(" \t", field.size());
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  return "";
}

/// Whether a process belongs to this run: it has the same job name, or without one the same parent.
bool is_companion(const fs::path& process, const fs::path& self) {
  std::error_code unreadable;
  if (fs::read_symlink(process / "exe", unreadable) != fs::read_symlink(self / "exe", unreadable))
    return false;
  const auto job = find_entry(read_environment(self), kJobName);
  if (job) return find_entry(read_environment(process), kJobName) == job;
  return read_status(process, "PPid:") == read_status(self, "PPid:");
}

/// The state is T if a signal stopped the process, and t if a debugger did.
bool is_stopped(const fs::path& process) {
  const std::string state = read_status(process, "State:");
  return !state.empty() && (state[0] == 'T' || state[0] == 't');
}

Nanos turn_of_this_rank() {
  const auto rank = find_rank(read_environment("/proc/self"));
  return kTurn * std::clamp(rank ? std::atoi(rank->c_str()) : 0, 0, 10);
}

std::string in_seconds(Nanos time) { return std::to_string(time / 1'000'000'000) + " s"; }

}  // namespace

std::string find_stopped_process() {
  std::error_code gone;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!is_stopped(entry.path()) || !is_companion(entry.path(), "/proc/self")) continue;
    const auto rank = find_rank(read_environment(entry.path()));
    return "rank " + rank.value_or("?") + " does not answer: its process " + name + " is stopped";
  }
  return "";
}

MpiWatchdog::MpiWatchdog(const Limits& limits, std::string call)
    : limits_(limits), call_(std::move(call)) {
  if (limits_.abandon) thread_ = std::thread([this] { watch(); });
}

MpiWatchdog::~MpiWatchdog() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    has_returned_ = true;
  }
  returned_.notify_all();
  thread_.join();
}

void MpiWatchdog::watch() {
  const Nanos turn = turn_of_this_rank();
  Nanos begin = read_monotonic_clock() + turn;
  Nanos last = begin;
  Nanos next_check = begin + limits_.timeout;
  std::optional<Nanos> interrupted_at;
  std::unique_lock lock(mutex_);
  while (!returned_.wait_for(lock, kPollInterval, [&] { return has_returned_; })) {
    const Nanos now = read_monotonic_clock();
    if (now - last > kStopped) begin += now - last;  // this process itself was suspended
    last = now;
    if (!interrupted_at && limits_.is_interrupted()) interrupted_at = now + turn;
    if (interrupted_at && now - *interrupted_at > kShortAbortGrace)
      return limits_.abandon("interrupted while MPI waited for other processes to " + call_);
    if (now - begin < limits_.timeout || now < next_check) continue;
    next_check = now + kCheckInterval;
    const std::string stopped = find_stopped_process();
    if (!stopped.empty())
      return limits_.abandon(stopped + "; MPI waited " + in_seconds(now - begin) + " for it to " +
                             call_);
    if (now - begin > std::max(limits_.timeout, kMinMpiStart))
      return limits_.abandon("a rank does not answer: MPI waited " + in_seconds(now - begin) +
                             " for it to " + call_ +
                             ", and no process of this host is stopped; look on the other "
                             "hosts, or give it more time with `timeout`");
  }
}

}  // namespace bubblescope::exec
