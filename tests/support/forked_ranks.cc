// Forking and waiting.
#include "tests/support/forked_ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <iterator>

#include "exec/nccl/rendezvous.h"
#include "exec/runtime/step_clock.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_nccl.h"

namespace bubblescope::tests {

namespace {

/// The limit of a process, with a moment for those that were killed by it.
constexpr unsigned kMaxSeconds = 120;
constexpr Nanos kAfterFirst = 3'000'000'000;

const exec::Secret kSecret("a secret of the tests");

struct Child {
  pid_t process = 0;
  int says = -1;
};

std::string live(const exec::TcpSocket& listener, const exec::RankInfo& rank_info,
                 const std::function<std::string(exec::SocketTransport& link)>& run) {
  try {
    reset_fake_gpu(1);
    enter_fake_nccl(rank_info.rank);
    const exec::Limits limits;
    exec::SocketTransport link =
        rank_info.rank == 0 ? exec::accept_ranks(listener, rank_info.count, limits, {kSecret})
                            : exec::connect_to_rank_0({"127.0.0.1", exec::port_of(listener)},
                                                      rank_info, limits, {[] { return kSecret; }});
    std::string said = run(link);
    const Nanos end = exec::read_monotonic_clock() + kAfterFirst;
    link.flush([end] { return exec::read_monotonic_clock() > end; });
    return said;
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t count = 0; (count = read(from, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(count));
  close(from);
  return text;
}

/// Whether it ended by itself before the time.
bool await(pid_t process, Nanos end) {
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (exec::read_monotonic_clock() > end) {
      kill(process, SIGKILL);
      waitpid(process, &status, 0);
      return false;
    }
    usleep(2000);
  }
  return WIFEXITED(status);
}

}  // namespace

std::vector<RankEnd> run_ranks(std::int32_t count,
                               const std::function<std::string(exec::SocketTransport& link)>& run) {
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  open_fake_nccl(count);
  std::vector<Child> children;
  for (std::int32_t rank = 0; rank < count; ++rank) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return {};
    const pid_t process = fork();
    if (process == 0) {
      alarm(kMaxSeconds);
      const std::string said = live(listener, {rank, count}, run);
      const ssize_t written = write(ends[1], said.data(), said.size());
      _exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
    }
    close(ends[1]);
    children.push_back({process, ends[0]});
  }
  enter_fake_nccl(count);  // the sockets are the children's
  std::vector<RankEnd> ended;
  Nanos end = exec::read_monotonic_clock() + Nanos{kMaxSeconds} * 1'000'000'000;
  for (const Child& child : children) {
    RankEnd& rank = ended.emplace_back();
    rank.ended = await(child.process, end);
    rank.said = read_all(child.says);
    end = exec::read_monotonic_clock() + kAfterFirst;
  }
  return ended;
}

void expect_others_say(const std::vector<RankEnd>& ends, std::int32_t victim,
                       const std::string& begin) {
  for (std::int32_t rank = 0; rank < std::ssize(ends); ++rank) {
    const RankEnd& end = ends[static_cast<std::size_t>(rank)];
    EXPECT_EQ(end.ended, rank != victim) << "rank " << rank;
    EXPECT_TRUE(rank == victim || end.said.starts_with(begin)) << rank << ": " << end.said;
  }
}

}  // namespace bubblescope::tests
