// Wraps the system's sockets.
#include "exec/nccl/tcp_socket.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "sim/ir/error.h"
#include "sim/ir/number.h"

namespace bubblescope::exec {

namespace {

constexpr int kCallMilliseconds = 500;

struct ReleaseAddresses {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};
using Addresses = std::unique_ptr<addrinfo, ReleaseAddresses>;

/// The name that selects every interface of this machine.
const std::string kAllInterfaces = "all";

Addresses find_addresses(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const bool is_any = address.host == kAllInterfaces;
  hints.ai_flags = AI_NUMERICSERV | (is_any ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  // Without a name, getaddrinfo() returns the loopback interface, or with AI_PASSIVE all.
  // "localhost" is not resolved, because a machine without /etc/hosts may not know it.
  const bool has_name = !is_any && !address.host.empty() && address.host != "localhost";
  const int status = getaddrinfo(has_name ? address.host.c_str() : nullptr,
                                 std::to_string(address.port).c_str(), &hints, &found);
  if (status == 0) return Addresses(found);
  throw Error(Fault::kMachine, "the host " + address.host + " cannot be resolved (" +
                                   gai_strerror(status) + "); set MASTER_ADDR to rank 0's host");
}

TcpSocket open_socket(const addrinfo& at) {
  const int type = at.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC;
  TcpSocket made(socket(at.ai_family, type, at.ai_protocol));
  const int on = 1;
  if (made.is_open()) setsockopt(made.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return made;
}

/// Not open if an error occurred (errno). An IPv6 wildcard address accepts IPv4 callers too.
TcpSocket listen_on(const addrinfo& at) {
  const int on = 1;
  const int off = 0;
  TcpSocket made = open_socket(at);
  if (!made.is_open()) return {};
  setsockopt(made.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.ai_family == AF_INET6)
    setsockopt(made.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(made.descriptor(), at.ai_addr, at.ai_addrlen) == 0 &&
      listen(made.descriptor(), SOMAXCONN) == 0)
    return made;
  return {};
}

/// The address of an interface of this machine, IPv4 if it has one; empty if there is no such
/// interface.
std::string find_interface(const std::string& name) {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(found, freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
      if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != family || name != at->ifa_name)
        continue;
      const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      std::array<char, NI_MAXHOST> text{};
      if (getnameinfo(at->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) ==
          0)
        return text.data();
    }
  return "";
}

/// The address to listen at: that of the interface, if one is named.
Address place_of(const Address& address, const std::string& interface_name) {
  if (interface_name.empty()) return address;
  if (interface_name == kAllInterfaces) return {kAllInterfaces, address.port};
  const std::string found = find_interface(interface_name);
  return {found.empty() ? interface_name : found, address.port};
}

bool has_connected(const TcpSocket& socket) {
  pollfd waiting{socket.descriptor(), POLLOUT, 0};
  if (poll(&waiting, 1, kCallMilliseconds) != 1) return false;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0;
}

}  // namespace

std::string to_string(const Address& address) {
  const bool has_colon = address.host.find(':') != std::string::npos;
  return (has_colon ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

Address parse_address(const std::string& text, const std::string& what) {
  const std::size_t colon = text.rfind(':');
  Address address{text.substr(0, colon), 0};
  if (address.host.size() > 1 && address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : parse_number<std::uint16_t>(std::string_view(text).substr(colon + 1));
  address.port = port.value_or(0);
  if (!address.host.empty() && address.port != 0) return address;
  throw Error(what + "'" + text + "' is not an address; write host:port");
}

TcpSocket::~TcpSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<std::size_t> TcpSocket::write(std::span<const std::byte> bytes) const {
  const ssize_t written = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (written >= 0) return static_cast<std::size_t>(written);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  return std::nullopt;
}

std::optional<Blob> TcpSocket::read() const {
  Blob bytes(std::size_t{1} << 16);
  const ssize_t count = recv(descriptor_, bytes.data(), bytes.size(), 0);
  if (count == 0) return std::nullopt;
  if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return std::nullopt;
  bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return bytes;
}

bool is_loopback(const std::string& host) {
  return host.empty() || host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

TcpSocket listen_at(const Address& address, const std::string& interface_name) {
  const Address place = place_of(address, interface_name);
  const Addresses found = find_addresses(place);
  int error = 0;
  // The IPv6 wildcard address accepts IPv4 callers too. For a single interface IPv4 comes first,
  // because more callers know that address.
  const bool is_any = place.host == kAllInterfaces;
  for (const int family : {is_any ? AF_INET6 : AF_INET, is_any ? AF_INET : AF_INET6})
    for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
      if (at->ai_family != family) continue;
      TcpSocket made = listen_on(*at);
      if (made.is_open()) return made;
      error = errno;
    }
  const bool is_elsewhere = error == EADDRNOTAVAIL;
  throw Error(Fault::kMachine,
              "rank 0 cannot listen at " + to_string(place) + ": " + std::strerror(error) +
                  (is_elsewhere ? "; set BUBBLESCOPE_INTERFACE to the interface of this host that "
                                  "the others reach, as in eth0, or to all"
                                : "; choose another MASTER_PORT"));
}

std::uint16_t port_of(const TcpSocket& listener) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&storage), &size);
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(storage).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(storage).sin_port);
}

std::string peer_of(const TcpSocket& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  std::array<char, NI_MAXHOST> text{};
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (getpeername(socket.descriptor(), address, &size) != 0 ||
      getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "?";
  return text.data();
}

TcpSocket accept_from(const TcpSocket& listener) {
  TcpSocket made(accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const int on = 1;
  if (made.is_open()) setsockopt(made.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return made;
}

TcpSocket connect_to(const Address& address) {
  const Addresses found = find_addresses(address);
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    TcpSocket made = open_socket(*at);
    if (!made.is_open()) continue;
    if (connect(made.descriptor(), at->ai_addr, at->ai_addrlen) != 0 && errno != EINPROGRESS)
      continue;
    if (has_connected(made)) return made;
  }
  return {};
}

}  // namespace bubblescope::exec
