// Counts calls, injects failures and reports leaks at exit.
#include "tests/fake_cuda/calls.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

namespace bubblescope::tests::fake_cuda {

namespace {

/// The exit status of a process with leaks.
constexpr int kLeaks = 98;

struct State {
  std::mutex mutex;
  std::map<std::string, long> calls;
  std::string failing;  ///< the call that fails
  long failing_at = 0;
  std::vector<std::function<std::string()>> leaks;
};

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

State& start() {
  auto& state = *new State;  // never destroyed: other code may use it at exit
  const std::string failing = setting("BUBBLESCOPE_FAKE_CUDA_FAIL");
  const std::size_t colon = failing.find(':');
  if (colon == std::string::npos) return state;
  state.failing = failing.substr(0, colon);
  state.failing_at = std::stol(failing.substr(colon + 1));
  return state;
}

State& state() {
  static State& started = start();
  return started;
}

std::mutex& counting() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

/// Runs after all exit handlers of the program.
[[gnu::destructor]] void finish() {
  if (const std::string file = setting("BUBBLESCOPE_FAKE_CUDA_CALLS"); !file.empty()) {
    std::ofstream out(file);
    for (const auto& [name, count] : state().calls) out << name << ' ' << count << '\n';
  }
  if (device_error() != cudaSuccess) return;  // a broken device cannot release anything
  bool any = false;
  for (const auto& ask : state().leaks) {
    const std::string left = ask();
    if (!left.empty()) std::fprintf(stderr, "fake CUDA: never released: %s\n", left.c_str());
    any = any || !left.empty();
  }
  if (any && setting("BUBBLESCOPE_FAKE_CUDA_LEAKS").empty()) _exit(kLeaks);
}

}  // namespace

void refuse(const std::string& text) {
  std::fprintf(stderr, "fake CUDA: %s\n", text.c_str());
  std::abort();
}

bool counts_as_failure(const std::string& name) {
  const std::lock_guard lock(counting());
  return ++state().calls[name] == state().failing_at && name == state().failing;
}

cudaError_t failure_of(const std::string& name) {
  return name == "cudaMalloc" || name == "cudaHostAlloc" ? cudaErrorMemoryAllocation
                                                         : cudaErrorUnknown;
}

bool releases(const std::string& name) {
  for (const char* const word : {"Free", "Destroy", "EndCapture"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

std::mutex& runtime_mutex() { return state().mutex; }

cudaError_t& last_error() {
  thread_local cudaError_t last = cudaSuccess;
  return last;
}

void ask_for_leaks(std::function<std::string()> leaks) {
  state().leaks.push_back(std::move(leaks));
}

}  // namespace bubblescope::tests::fake_cuda
