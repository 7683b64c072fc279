// SocketTransport and the step protocol over it: frames, messages, deaths, clock sync and shutdown.
// Each rank is a thread.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exec/nccl/rendezvous.h"
#include "exec/runtime/clock_sync.h"
#include "exec/runtime/processes.h"
#include "exec/runtime/step_clock.h"
#include "exec/runtime/step_protocol.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

exec::Blob blob_of(const std::string& text) {
  exec::BlobWriter writer;
  writer.write_text(text);
  return writer.take();
}

std::string text_of(const exec::Blob& blob) { return exec::BlobReader(blob).read_text(); }

const exec::Secret kSecret("a secret of the tests");

const exec::ShouldAbort kNever = [] { return false; };

exec::Limits limits_of(std::int64_t milliseconds) { return {milliseconds * 1'000'000, nullptr}; }

std::vector<std::optional<exec::Blob>> gather(exec::SocketTransport& link, exec::Blob own) {
  return link.gather(std::move(own), kNever).payloads;
}

/// Runs `one` as every rank. Returns the exception text of each, "" if there was none.
std::vector<std::string> meet(std::int32_t count,
                              const std::function<void(exec::SocketTransport&)>& one) {
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  const exec::Address address{"127.0.0.1", exec::port_of(listener)};
  std::vector<std::string> thrown(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (std::int32_t rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      try {
        exec::SocketTransport link =
            rank == 0 ? exec::accept_ranks(listener, count, limits_of(20'000), {kSecret})
                      : exec::connect_to_rank_0(address, {rank, count}, limits_of(20'000),
                                                {[] { return kSecret; }});
        one(link);
        const Nanos end = exec::read_monotonic_clock() + 2'000'000'000;
        link.flush([end] { return exec::read_monotonic_clock() > end; });
      } catch (const Error& error) {
        thrown[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

const std::vector<std::string> kNothingThrown3(3);

TEST(NcclFrames, ComeWholeHoweverTheirBytesCome) {
  const exec::Frame sent{exec::FrameKind::kGather, 7, blob_of("forward")};
  exec::Blob bytes = exec::to_bytes(sent);
  const exec::Blob second = exec::to_bytes({exec::FrameKind::kShutdown, exec::kAllRanks, {}});
  bytes.insert(bytes.end(), second.begin(), second.end());
  exec::FrameReader reader(1000);
  std::vector<exec::Frame> frames;
  for (const std::byte& byte : bytes) {
    reader.take({&byte, 1});
    while (std::optional<exec::Frame> frame = reader.next()) frames.push_back(std::move(*frame));
  }
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].kind, exec::FrameKind::kGather);
  EXPECT_EQ(frames[0].rank, 7);
  EXPECT_EQ(text_of(frames[0].payload), "forward");
  EXPECT_EQ(frames[1].rank, exec::kAllRanks);
}

TEST(NcclFrames, GarbageIsRefused) {
  const exec::Blob good = exec::to_bytes({exec::FrameKind::kHello, 0, {}});
  const auto refuses = [](exec::Blob bytes, const std::string& why) {
    exec::FrameReader reader(16);
    reader.take(bytes);
    EXPECT_EQ(error_of([&] { reader.next(); }),
              "the received data is not a bubblescope frame: " + why);
  };
  const std::pair<std::size_t, const char*> damages[]{
      {0, "its magic number is wrong"},
      {3, "its magic number is wrong"},
      {5, "kind 65024 is not known"},
      {9, "rank -16712192 is impossible"},
      {17, "it announces 279275953455104 bytes, of at most 16"}};
  for (const auto& [at, why] : damages) {
    exec::Blob bytes = good;
    bytes[at] = std::byte{0xfe};
    if (at == 9) bytes[11] = std::byte{0xff};
    refuses(bytes, why);
  }
  refuses(exec::to_bytes({exec::FrameKind::kHello, 0, exec::Blob(17)}),
          "it announces 17 bytes, of at most 16");
}

TEST(NcclFrames, AreNoLargerThanTheirKind) {
  for (std::uint32_t kind = 0; kind < exec::kFrameKinds; ++kind) {
    const std::uint64_t largest =
        std::min(exec::max_payload_bytes(exec::FrameKind{kind}), std::uint64_t{1} << 17);
    for (const std::uint64_t size : {largest, largest + 1}) {
      exec::FrameReader reader(std::uint64_t{1} << 17);
      reader.take(exec::to_bytes({exec::FrameKind{kind}, 0, exec::Blob(size)}));
      if (size == largest)
        EXPECT_EQ(reader.next()->payload.size(), size) << kind;
      else
        EXPECT_EQ(error_of([&] { reader.next(); }),
                  fmt::format("the received data is not a bubblescope frame: it announces {}, "
                              "of at most {}",
                              counted(size, "byte"), largest))
            << kind;
    }
  }
}

TEST(NcclLink, ARankThatAnnouncesMoreThanTheProgramSharesIsGoneAtOnce) {
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  exec::TcpSocket there = exec::connect_to({"127.0.0.1", exec::port_of(listener)});
  std::vector<exec::Connection> connections;
  connections.push_back({exec::accept_from(listener), exec::FrameReader(1000)});
  exec::SocketTransport link({0, 2}, std::move(connections));
  link.allow_gathers(std::uint64_t{2} << 20);
  exec::Blob bytes =
      exec::to_bytes({exec::FrameKind::kGather, 0, exec::Blob((std::size_t{2} << 20) + 1)});
  bytes.resize(20);  // the header alone
  there.write(bytes);
  const auto all = gather(link, blob_of("here"));
  EXPECT_FALSE(all[1]);
  EXPECT_EQ(link.first_gone(), 1);
}

TEST(NcclLink, SharingMoreThanTheProgramAllowsIsAnError) {
  exec::SocketTransport link({0, 1}, {});
  gather(link, exec::Blob(exec::kSmallGather));
  EXPECT_EQ(error_of([&] { gather(link, exec::Blob(exec::kSmallGather + 1)); }),
            "rank 0 shares 1048577 bytes, of at most 1048576 that its Program allows; please "
            "report it");
}

TEST(NcclLink, SharesInOrderOfRanks) {
  EXPECT_EQ(meet(3,
                 [](exec::SocketTransport& link) {
                   for (const char* round : {"a", "b"}) {
                     const auto all =
                         gather(link, blob_of(round + std::to_string(link.self().rank)));
                     for (std::size_t rank = 0; rank < 3; ++rank)
                       EXPECT_EQ(text_of(*all[rank]), round + std::to_string(rank));
                   }
                 }),
            kNothingThrown3);
}

TEST(NcclLink, PassesMessagesOnWithTheirSender) {
  EXPECT_EQ(meet(3,
                 [](exec::SocketTransport& link) {
                   if (link.self().rank == 2) {
                     link.send(1, exec::MessageTag::kControl, blob_of("to one"));
                     link.send_all(exec::MessageTag::kControl, blob_of("to all"));
                   } else {
                     std::vector<std::string> come;
                     while (come.size() < (link.self().rank == 1 ? 2u : 1u))
                       for (const auto& letter : link.poll(exec::MessageTag::kControl)) {
                         EXPECT_EQ(letter.from, 2);
                         come.push_back(text_of(letter.payload));
                       }
                     EXPECT_EQ(come.back(), "to all");
                   }
                   gather(link, {});
                 }),
            kNothingThrown3);
}

TEST(NcclLink, LargeSharesGetThroughAlthoughAllSendAtOnce) {
  EXPECT_EQ(meet(3,
                 [](exec::SocketTransport& link) {
                   link.allow_gathers(std::uint64_t{3} << 20);
                   gather(link, {});  // now all accept larger payloads
                   const exec::Blob own(std::size_t{3} << 20, std::byte(link.self().rank));
                   const auto all = gather(link, own);
                   for (std::size_t rank = 0; rank < 3; ++rank) {
                     ASSERT_EQ(all[rank]->size(), own.size());
                     EXPECT_EQ(all[rank]->back(), std::byte(rank));
                   }
                 }),
            kNothingThrown3);
}

TEST(NcclLink, ARankThatLeavesIsGoneForAllOthers) {
  EXPECT_EQ(meet(3,
                 [](exec::SocketTransport& link) {
                   if (link.self().rank == 1) return;  // its socket is closed
                   const auto all = gather(link, blob_of("here"));
                   EXPECT_FALSE(all[1]);
                   EXPECT_TRUE(all[0] && all[2]);
                   EXPECT_EQ(link.first_gone(), 1);
                 }),
            kNothingThrown3);
}

/// Rank 2 sends its payload and dies before rank 1 has sent its own. Then the others leave in any
/// order.
TEST(NcclLink, AllRanksKnowWhichWereGoneWhenAllPartsWereThere) {
  EXPECT_EQ(meet(4,
                 [](exec::SocketTransport& link) {
                   if (link.self().rank == 2)
                     return link.send(0, exec::MessageTag::kGather, blob_of("early"));
                   if (link.self().rank == 1)
                     while (!link.first_gone()) link.poll(exec::MessageTag::kControl);
                   const exec::Gathered all = link.gather(blob_of("here"), kNever);
                   EXPECT_EQ(all.gone, (std::vector<bool>{false, false, true, false}));
                   EXPECT_EQ(text_of(*all.payloads[2]), "early");
                 }),
            std::vector<std::string>(4));
}

TEST(NcclLink, WithoutRankZeroNoRankWaits) {
  EXPECT_EQ(meet(3,
                 [](exec::SocketTransport& link) {
                   if (link.self().rank == 0) return;
                   EXPECT_FALSE(gather(link, blob_of("here"))[0]);
                   EXPECT_TRUE(link.is_gone(0));
                 }),
            kNothingThrown3);
}

/// The other end sends a message and then resets the connection, because it has not read what was
/// sent to it.
TEST(NcclLink, LastMessagesArriveAlthoughNothingCanBeSentAnyMore) {
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  exec::TcpSocket there = exec::connect_to({"127.0.0.1", exec::port_of(listener)});
  exec::TcpSocket here = exec::accept_from(listener);
  ASSERT_TRUE(there.is_open() && here.is_open());
  there.write(exec::to_bytes({exec::FrameKind::kControl, 0, blob_of("no room for 9 bytes")}));
  here.write(exec::Blob(100));
  there.close();
  while (here.write(exec::Blob(1))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::vector<exec::Connection> connections;
  connections.push_back({std::move(here), exec::FrameReader(1000)});
  exec::SocketTransport link({0, 2}, std::move(connections));
  link.send(1, exec::MessageTag::kControl, blob_of("go on"));  // fails
  EXPECT_TRUE(link.is_gone(1));
  const auto messages = link.poll(exec::MessageTag::kControl);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(text_of(messages[0].payload), "no room for 9 bytes");
}

TEST(NcclLink, WithoutRankZeroAnotherRankIsTheCoordinator) {
  EXPECT_EQ(meet(3,
                 [](exec::SocketTransport& link) {
                   if (link.self().rank == 0) return;
                   gather(link, blob_of("here"));
                   EXPECT_EQ(link.coordinator(), 1);
                 }),
            kNothingThrown3);
}

/// Rank 0 is busy for longer than the timeout of the others, and sends heartbeats.
TEST(Shutdown, TakesAsLongAsRankZeroShowsThatItLives) {
  EXPECT_EQ(meet(3,
                 [](exec::SocketTransport& link) {
                   gather(link, {});  // all ranks start together
                   if (link.self().rank == 0) {
                     for (int turn = 0; turn < 20; ++turn) {
                       std::this_thread::sleep_for(std::chrono::milliseconds(200));
                       exec::send_heartbeat(link);
                     }
                   }
                   EXPECT_EQ(exec::await_shutdown(link, limits_of(3000)), "");
                 }),
            kNothingThrown3);
}

TEST(Shutdown, NamesRankZeroWhereItIsGoneAtOnce) {
  EXPECT_EQ(meet(3,
                 [](exec::SocketTransport& link) {
                   gather(link, {});
                   if (link.self().rank == 0) return;  // its sockets are closed
                   const Nanos begin = exec::read_monotonic_clock();
                   const std::string lost = exec::await_shutdown(link, limits_of(30'000));
                   // Rank 1 becomes the coordinator if it notices the death first.
                   if (link.self().rank == 2 || !lost.empty()) {
                     EXPECT_EQ(lost, "rank 0 is gone: its process has died before all was done");
                   }
                   EXPECT_LT(exec::read_monotonic_clock() - begin, 10'000'000'000);
                 }),
            kNothingThrown3);
}

TEST(Shutdown, NamesRankZeroWhereItIsSilent) {
  EXPECT_EQ(meet(2,
                 [](exec::SocketTransport& link) {
                   gather(link, {});
                   if (link.self().rank == 0)
                     return std::this_thread::sleep_for(std::chrono::milliseconds(4000));
                   EXPECT_EQ(exec::await_shutdown(link, limits_of(200)),
                             "rank 0 does not answer: its process has died or hangs");
                 }),
            std::vector<std::string>(2));
}

TEST(ClockSync, AllBeginAtOneMomentOfOneClock) {
  std::vector<std::optional<exec::StepBegin>> begins(3);
  EXPECT_EQ(meet(3,
                 [&](exec::SocketTransport& link) {
                   const auto rank = static_cast<std::size_t>(link.self().rank);
                   begins[rank] = exec::agree_on_begin(link, kNever);
                   gather(link, {});
                 }),
            kNothingThrown3);
  // Threads share one clock, so an offset is an error, and must be within the reported one.
  for (const auto& begin : begins) {
    ASSERT_TRUE(begin);
    EXPECT_LE(std::abs(begin->clock.ahead), begin->clock.error);
    EXPECT_LE(std::abs(begin->time - begins[0]->time), begin->clock.error);
  }
}

TEST(ClockSync, DoesNotWaitForARankThatIsGone) {
  EXPECT_EQ(meet(3,
                 [](exec::SocketTransport& link) {
                   if (link.self().rank == 2) return;
                   EXPECT_FALSE(exec::agree_on_begin(link, kNever));
                 }),
            kNothingThrown3);
}

TEST(StepProtocol, AStopIsHeardAndTheFailureOfAStartSaysWhy) {
  const auto thrown = meet(3, [](exec::SocketTransport& link) {
    exec::StepProtocol protocol(link, limits_of(20'000));
    if (link.self().rank == 1) return protocol.notify_failure("no room for 9 bytes");
    for (;;) protocol.watch();
  });
  EXPECT_EQ(thrown[0], "rank 1 cannot continue: no room for 9 bytes");
  EXPECT_EQ(thrown[2], thrown[0]);
}

TEST(StepProtocol, NoRankIsAwaitedLongerThanTheTimeout) {
  const auto thrown = meet(2, [](exec::SocketTransport& link) {
    exec::StepProtocol protocol(link, limits_of(100));
    if (link.self().rank == 1)
      return std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // hangs
    try {
      for (;;) protocol.watch();
    } catch (const Error&) {
      EXPECT_EQ(protocol.abort_reason(), exec::AbortReason::kTimeout);
      throw;
    }
  });
  EXPECT_EQ(thrown[0], "the other ranks do not answer within `timeout`");
}

TEST(StepProtocol, SignsOfLifeLetOthersWait) {
  EXPECT_EQ(meet(2,
                 [](exec::SocketTransport& link) {
                   exec::StepProtocol protocol(link, limits_of(1500));
                   gather(link, {});  // both ranks start together
                   const Nanos end = exec::read_monotonic_clock() + 3'000'000'000;
                   for (std::size_t ended = 0; exec::read_monotonic_clock() < end; ++ended) {
                     if (link.self().rank == 0)
                       protocol.watch();
                     else
                       protocol.exchange_heartbeats(ended);
                     std::this_thread::sleep_for(std::chrono::milliseconds(1));
                   }
                   gather(link, {});
                 }),
            std::vector<std::string>(2));
}

}  // namespace
}  // namespace bubblescope::tests
