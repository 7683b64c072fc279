// How processes find each other, and strangers who call. Here each end is a thread.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>

#include "exec/nccl/meeting.h"
#include "exec/step_clock.h"
#include "sim/ir/error.h"

namespace bubblescope {
namespace {

const ProcessLink::GivesUp kNever = [] { return false; };

Limits limits_of(std::int64_t milliseconds) { return {milliseconds * 1'000'000, nullptr}; }

TEST(NcclMeeting, TakesCallersOfBothKindsOfAddresses) {
  const TcpSocket listener = listen_at({"node1", 0}, "all");
  EXPECT_TRUE(call({"127.0.0.1", port_of(listener)}).is_open());
  const TcpSocket probe(socket(AF_INET6, SOCK_STREAM, 0));
  if (!probe.is_open()) GTEST_SKIP() << "this machine has no IPv6";
  try {
    listen_at({"::1", 0});
  } catch (const Error&) {
    GTEST_SKIP() << "this machine has no address of IPv6";
  }
  EXPECT_TRUE(call({"::1", port_of(listener)}).is_open());
}

/// Whether a listener answers at an address of this machine.
bool answers(const TcpSocket& listener, const std::string& host) {
  return call({host, port_of(listener)}).is_open();
}

TEST(NcclMeeting, ListensAtTheLoopbackInterfaceUnlessAnotherIsNamed) {
  // 127.0.0.2 stands for another interface: a listener at all of them answers there.
  for (const char* host : {"", "localhost", "127.0.0.1"}) {
    const TcpSocket listener = listen_at({host, 0});
    EXPECT_TRUE(answers(listener, "127.0.0.1")) << host;
    EXPECT_FALSE(answers(listener, "127.0.0.2")) << host;
  }
  const TcpSocket other = listen_at({"127.0.0.2", 0});
  EXPECT_TRUE(answers(other, "127.0.0.2"));
  EXPECT_FALSE(answers(other, "127.0.0.1"));
}

TEST(NcclMeeting, ListensAtTheInterfaceThatIsNamed) {
  EXPECT_TRUE(answers(listen_at({"node1", 0}, "lo"), "127.0.0.1"));
  EXPECT_FALSE(answers(listen_at({"node1", 0}, "lo"), "127.0.0.2"));
  EXPECT_TRUE(answers(listen_at({"node1", 0}, "127.0.0.2"), "127.0.0.2"));
  EXPECT_TRUE(answers(listen_at({"127.0.0.1", 0}, "all"), "127.0.0.2"));
}

TEST(NcclMeeting, AnAddressOfAnotherMachineNeedsAnInterface) {
  try {
    listen_at({"192.0.2.1", 0});  // for documents, RFC 5737
    FAIL() << "this machine cannot have it";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("set BUBBLESCOPE_INTERFACE to"), std::string::npos)
        << error.what();
  }
}

TEST(NcclMeeting, SeeksANameUntilItIsKnown) {
  const TcpSocket listener = listen_at({"127.0.0.1", 0});
  std::thread first([&] { receive_others(listener, 2, limits_of(20'000)); });
  int calls = 0;
  const Caller known_later = [&](const Address& address) {
    if (++calls < 3) throw Error(Fault::kMachine, "the host node1 is not known");
    return call({"127.0.0.1", address.port});
  };
  call_first({"node1", port_of(listener)}, {1, 2}, limits_of(20'000), known_later);
  EXPECT_EQ(calls, 3);
  first.join();
}

TEST(NcclMeeting, SaysThatANameWasNotKnownInAllTheTime) {
  const Nanos begin = read_monotonic_clock();
  const Caller never = [](const Address& address) -> TcpSocket {
    throw Error(Fault::kMachine, "the host " + address.host + " is not known");
  };
  try {
    call_first({"node1", 1}, {1, 2}, limits_of(300), never);
    FAIL() << "nobody knows it";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the host node1 is not known");
  }
  EXPECT_GE(read_monotonic_clock() - begin, 300'000'000);
}

TEST(NcclMeeting, NamesThoseWhoDoNotComeAndCountsStrangers) {
  const TcpSocket listener = listen_at({"127.0.0.1", 0});
  const Address address{"127.0.0.1", port_of(listener)};
  TcpSocket scanner = call(address);
  ASSERT_TRUE(scanner.is_open());
  const std::string request = "GET / HTTP/1.1\r\n\r\n----------------";
  scanner.write(std::as_bytes(std::span(request)));
  TcpSocket partial = call(address);
  const Blob hello = to_bytes({Line::kHello, 0, Blob(12)});
  partial.write(std::span(hello).subspan(0, 25));
  partial.close();
  try {
    receive_others(listener, 3, limits_of(300));
    FAIL() << "nobody came";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.fault(), Fault::kMachine);
    EXPECT_EQ(text.find("of 3 processes, these have not come to rank 0 within --timeout: rank 1, 2 "
                        "(2 caller(s) turned away"),
              0u)
        << text;
  }
}

TEST(NcclMeeting, StrangersDoNotKeepRanksFromMeeting) {
  const TcpSocket listener = listen_at({"127.0.0.1", 0});
  const Address address{"127.0.0.1", port_of(listener)};
  TcpSocket silent = call(address);
  TcpSocket noisy = call(address);
  noisy.write(Blob(4000, std::byte{0x42}));
  std::thread other([&] {
    ProcessLink link = call_first(address, {1, 2}, limits_of(20'000));
    link.share({}, kNever);
  });
  ProcessLink link = receive_others(listener, 2, limits_of(20'000));
  EXPECT_TRUE(link.share({}, kNever)[1]);
  other.join();
}

TEST(NcclMeeting, TurnsAwayWhoDoesNotBelong) {
  const TcpSocket listener = listen_at({"127.0.0.1", 0});
  const Address address{"127.0.0.1", port_of(listener)};
  std::atomic<bool> interrupted = false;
  std::thread first([&] {
    EXPECT_THROW(receive_others(listener, 3, {20'000'000'000, &interrupted}), Error);
  });
  const auto refusal = [&](const Seat& seat) {
    try {
      call_first(address, seat, limits_of(20'000));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(
      refusal({1, 4}).find("turned this process away: rank 1 counts 4 processes and rank 0 3"),
      std::string::npos);
  EXPECT_NE(refusal({7, 3}).find("there is no seat for rank 7"), std::string::npos);
  interrupted = true;
  first.join();
}

TEST(NcclMeeting, WithoutRankZeroSaysWhereItWasSought) {
  std::uint16_t port = 0;
  {
    port = port_of(listen_at({"127.0.0.1", 0}));  // free again
  }
  try {
    call_first({"127.0.0.1", port}, {1, 2}, limits_of(100));
    FAIL() << "nobody listens there";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("rank 0 does not answer at 127.0.0.1:"), 0u);
  }
}

TEST(NcclMeeting, ReadsAddresses) {
  EXPECT_EQ(parse_address("host:80", ""), (Address{"host", 80}));
  EXPECT_EQ(to_string(parse_address("[fe80::1]:65535", "")), "[fe80::1]:65535");
  for (const char* text : {"host", "host:", ":80", "host:0", "host:65536", "host:8x", ""})
    EXPECT_THROW(parse_address(text, "X="), Error) << text;
}

}  // namespace
}  // namespace bubblescope
