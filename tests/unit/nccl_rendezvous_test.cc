// The rendezvous of processes, and connections of foreign callers. Each end is a thread.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/nccl/rendezvous.h"
#include "exec/runtime/step_clock.h"
#include "sim/ir/error.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

const exec::Secret kSecret("a secret of the tests");
const exec::Secret kOtherSecret("another secret of the tests");

exec::Secret find_secret() { return kSecret; }

const exec::ShouldAbort kNever = [] { return false; };

exec::Limits limits_of(std::int64_t milliseconds) { return {milliseconds * 1'000'000, nullptr}; }

TEST(NcclRendezvous, TakesCallersOfBothKindsOfAddresses) {
  const exec::TcpSocket listener = exec::listen_at({"node1", 0}, "all");
  EXPECT_TRUE(exec::connect_to({"127.0.0.1", exec::port_of(listener)}).is_open());
  const exec::TcpSocket probe(socket(AF_INET6, SOCK_STREAM, 0));
  if (!probe.is_open()) GTEST_SKIP() << "this machine has no IPv6";
  try {
    exec::listen_at({"::1", 0});
  } catch (const Error&) {
    GTEST_SKIP() << "this machine has no address of IPv6";
  }
  EXPECT_TRUE(exec::connect_to({"::1", exec::port_of(listener)}).is_open());
}

/// Whether a listener answers at an address of this machine.
bool answers(const exec::TcpSocket& listener, const std::string& host) {
  return exec::connect_to({host, exec::port_of(listener)}).is_open();
}

TEST(NcclRendezvous, ListensAtTheLoopbackInterfaceUnlessAnotherIsNamed) {
  // 127.0.0.2 represents another interface: only a listener at all interfaces answers there.
  for (const char* host : {"", "localhost", "127.0.0.1"}) {
    const exec::TcpSocket listener = exec::listen_at({host, 0});
    EXPECT_TRUE(answers(listener, "127.0.0.1")) << host;
    EXPECT_FALSE(answers(listener, "127.0.0.2")) << host;
  }
  const exec::TcpSocket other = exec::listen_at({"127.0.0.2", 0});
  EXPECT_TRUE(answers(other, "127.0.0.2"));
  EXPECT_FALSE(answers(other, "127.0.0.1"));
}

TEST(NcclRendezvous, ListensAtTheInterfaceThatIsNamed) {
  EXPECT_TRUE(answers(exec::listen_at({"node1", 0}, "lo"), "127.0.0.1"));
  EXPECT_FALSE(answers(exec::listen_at({"node1", 0}, "lo"), "127.0.0.2"));
  EXPECT_TRUE(answers(exec::listen_at({"node1", 0}, "127.0.0.2"), "127.0.0.2"));
  EXPECT_TRUE(answers(exec::listen_at({"127.0.0.1", 0}, "all"), "127.0.0.2"));
}

TEST(NcclRendezvous, AnAddressOfAnotherMachineNeedsAnInterface) {
  try {
    exec::listen_at({"192.0.2.1", 0});  // reserved for documentation, RFC 5737
    FAIL() << "this machine cannot have it";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("set BUBBLESCOPE_INTERFACE to"), std::string::npos)
        << error.what();
  }
}

TEST(NcclRendezvous, SeeksANameUntilItIsKnown) {
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  std::thread first([&] { exec::accept_ranks(listener, 2, limits_of(20'000), {kSecret}); });
  int calls = 0;
  const exec::Connect known_later = [&](const exec::Address& address) {
    if (++calls < 3) throw Error(Fault::kMachine, "the host node1 is not known");
    return exec::connect_to({"127.0.0.1", address.port});
  };
  exec::connect_to_rank_0({"node1", exec::port_of(listener)}, {1, 2}, limits_of(20'000),
                          {find_secret, known_later});
  EXPECT_EQ(calls, 3);
  first.join();
}

TEST(NcclRendezvous, SaysThatANameWasNotKnownInAllTheTime) {
  const Nanos begin = exec::read_monotonic_clock();
  const exec::Connect never = [](const exec::Address& address) -> exec::TcpSocket {
    throw Error(Fault::kMachine, "the host " + address.host + " is not known");
  };
  EXPECT_EQ(error_of([&] {
              exec::connect_to_rank_0({"node1", 1}, {1, 2}, limits_of(300), {find_secret, never});
            }),
            "the host node1 is not known");
  EXPECT_GE(exec::read_monotonic_clock() - begin, 300'000'000);
}

TEST(NcclRendezvous, NamesMissingRanksAndCountsUnknownCallers) {
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  const exec::Address address{"127.0.0.1", exec::port_of(listener)};
  exec::TcpSocket scanner = exec::connect_to(address);
  ASSERT_TRUE(scanner.is_open());
  const std::string request = "GET / HTTP/1.1\r\n\r\n----------------";
  scanner.write(std::as_bytes(std::span(request)));
  exec::TcpSocket partial = exec::connect_to(address);
  const exec::Blob hello = exec::to_bytes({exec::FrameKind::kHello, 0, exec::Blob(12)});
  partial.write(std::span(hello).subspan(0, 25));
  partial.close();
  try {
    exec::accept_ranks(listener, 3, limits_of(300), {kSecret});
    FAIL() << "nobody came";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.fault(), Fault::kMachine);
    EXPECT_EQ(
        text.find("of 3 processes, these did not connect to rank 0 within `timeout`: rank 1, 2 "
                  "(2 connections rejected"),
        0u)
        << text;
  }
}

TEST(NcclRendezvous, ForeignConnectionsDoNotPreventTheRendezvous) {
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  const exec::Address address{"127.0.0.1", exec::port_of(listener)};
  exec::TcpSocket silent = exec::connect_to(address);
  exec::TcpSocket noisy = exec::connect_to(address);
  noisy.write(exec::Blob(4000, std::byte{0x42}));
  std::thread other([&] {
    exec::SocketTransport link =
        exec::connect_to_rank_0(address, {1, 2}, limits_of(20'000), {find_secret});
    link.gather({}, kNever);
  });
  exec::SocketTransport link = exec::accept_ranks(listener, 2, limits_of(20'000), {kSecret});
  EXPECT_TRUE(link.gather({}, kNever).payloads[1]);
  other.join();
}

TEST(NcclRendezvous, ACallerWithoutTheSecretIsRefusedWithOneWarning) {
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  const exec::Address address{"127.0.0.1", exec::port_of(listener)};
  std::vector<std::string> warnings;
  const exec::RendezvousServer door{kSecret,
                                    [&](const std::string& what) { warnings.push_back(what); }};
  std::atomic<bool> interrupted = false;
  std::string failure_of_first;
  std::thread first([&] {
    failure_of_first = error_of([&] {
      exec::accept_ranks(listener, 2, {20'000'000'000, &interrupted}, door);
    });
  });
  // Rank 0 would have ended if it had accepted a foreign caller, so no attempt may wait for long.
  for (int turn = 0; turn < 3; ++turn)
    EXPECT_TRUE(fails_with(
        [&] {
          exec::connect_to_rank_0(address, {1, 2}, limits_of(2'000), {[] { return kOtherSecret; }});
        },
        "rejected this process: its secret is not that of rank 0"));
  const std::string failure = error_of([&] {
    exec::connect_to_rank_0(address, {1, 2}, limits_of(2'000), {find_secret});
  });
  if (!failure.empty()) interrupted = true;
  first.join();
  EXPECT_EQ(failure, "");
  EXPECT_EQ(failure_of_first, "");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find("a connection from 127.0.0.1 does not have this run's secret"), 0u);
}

TEST(NcclRendezvous, ManySilentConnectionsDoNotPreventTheRendezvous) {
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  const exec::Address address{"127.0.0.1", exec::port_of(listener)};
  std::vector<exec::TcpSocket> silent;
  for (int caller = 0; caller < 300; ++caller) silent.push_back(exec::connect_to(address));
  const Nanos begin = exec::read_monotonic_clock();
  std::thread first([&] { exec::accept_ranks(listener, 2, limits_of(20'000), {kSecret}); });
  exec::connect_to_rank_0(address, {1, 2}, limits_of(20'000), {find_secret});
  first.join();
  EXPECT_LT(exec::read_monotonic_clock() - begin,
            4'000'000'000);  // less than a silent caller may take
}

std::optional<exec::Frame> read_frame(const exec::TcpSocket& socket, exec::FrameReader& reader) {
  for (int turn = 0; turn < 2000; ++turn) {
    if (const auto bytes = socket.read()) reader.take(*bytes);
    if (auto frame = reader.next()) return frame;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

/// An impostor can relay the caller's hello to rank 0 and rank 0's frames to the caller. But a
/// hello is valid for one connection only, and only rank 0 can sign the welcome.
TEST(NcclRendezvous, AnotherRankZeroIsNotBelievedAndAHelloServesOnce) {
  const exec::TcpSocket impostor = exec::listen_at({"127.0.0.1", 0});
  std::string failure;
  std::thread caller([&] {
    failure = error_of([&] {
      exec::connect_to_rank_0({"127.0.0.1", exec::port_of(impostor)}, {1, 2}, limits_of(20'000),
                              {find_secret});
    });
  });
  exec::TcpSocket there;
  while (!there.is_open()) there = exec::accept_from(impostor);
  exec::BlobWriter challenge;
  challenge.write(std::uint32_t{3});
  challenge.write(exec::Nonce{});
  there.write(exec::to_bytes({exec::FrameKind::kChallenge, 0, challenge.take()}));
  exec::FrameReader reader(1024);
  const std::optional<exec::Frame> hello = read_frame(there, reader);
  ASSERT_TRUE(hello);
  const std::string said(reinterpret_cast<const char*>(hello->payload.data()),
                         hello->payload.size());
  EXPECT_EQ(said.find(kSecret.text()), std::string::npos);
  there.write(exec::to_bytes(
      {exec::FrameKind::kWelcome, 0, exec::Blob(hello->payload.end() - 32, hello->payload.end())}));
  caller.join();
  EXPECT_NE(failure.find("does not have this run's secret"), std::string::npos) << failure;

  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  const exec::TcpSocket replay = exec::connect_to({"127.0.0.1", exec::port_of(listener)});
  replay.write(exec::to_bytes(*hello));
  EXPECT_TRUE(fails_with([&] { exec::accept_ranks(listener, 2, limits_of(300), {kSecret}); },
                         "because its secret is not that of rank 0"));
}

TEST(NcclRendezvous, RefusesCallersThatDoNotBelong) {
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  const exec::Address address{"127.0.0.1", exec::port_of(listener)};
  std::atomic<bool> interrupted = false;
  std::thread first([&] {
    EXPECT_TRUE(fails_with(
        [&] {
          exec::accept_ranks(listener, 3, {20'000'000'000, &interrupted}, {kSecret});
        },
        " did not connect to rank 0 "));
  });
  const auto refusal = [&](const exec::RankInfo& rank_info) {
    try {
      exec::connect_to_rank_0(address, rank_info, limits_of(20'000), {find_secret});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal({1, 4}).find("rejected this process: rank 1 was started as one of 4 "
                                 "processes, rank 0 as one of 3; start all by one launcher"),
            std::string::npos);
  EXPECT_NE(refusal({7, 3}).find("rank 0 expects no rank 7"), std::string::npos);
  interrupted = true;
  first.join();
}

TEST(NcclRendezvous, WithoutRankZeroSaysWhereItWasSought) {
  std::uint16_t port = 0;
  {
    port = exec::port_of(exec::listen_at({"127.0.0.1", 0}));  // the port is free again
  }
  EXPECT_TRUE(fails_with(
      [&] {
        exec::connect_to_rank_0({"127.0.0.1", port}, {1, 2}, limits_of(100), {find_secret});
      },
      "rank 0 does not answer at 127.0.0.1:"));
}

TEST(NcclRendezvous, ReadsAddresses) {
  EXPECT_EQ(exec::parse_address("host:80", ""), (exec::Address{"host", 80}));
  EXPECT_EQ(to_string(exec::parse_address("[fe80::1]:65535", "")), "[fe80::1]:65535");
  for (const char* text : {"host", "host:", ":80", "host:0", "host:65536", "host:8x", ""})
    EXPECT_EQ(error_of([&] { exec::parse_address(text, "X="); }),
              fmt::format("X='{}' is not an address; write host:port", text))
        << text;
}

}  // namespace
}  // namespace bubblescope::tests
