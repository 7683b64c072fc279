// Sockets that never block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "exec/runtime/blob.h"

namespace bubblescope::exec {

/// Where processes meet.
struct Address {
  std::string host;
  std::uint16_t port = 0;

  bool operator==(const Address&) const = default;
};

/// "host:1234".
std::string to_string(const Address& address);

/// "host:1234" or "[::1]:1234". Throws Error that begins with `what`.
Address parse_address(const std::string& text, const std::string& what);

/// Owns a file descriptor.
class TcpSocket {
 public:
  TcpSocket() = default;
  explicit TcpSocket(int descriptor) : descriptor_(descriptor) {}
  TcpSocket(TcpSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  TcpSocket& operator=(TcpSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~TcpSocket();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void close() { *this = TcpSocket(); }

  /// Sends as much as goes now, and tells how much; nothing: the other end has gone.
  std::optional<std::size_t> write(std::span<const std::byte> bytes) const;

  /// What has come, perhaps nothing; empty: the other end has gone.
  std::optional<Blob> read() const;

 private:
  int descriptor_ = -1;
};

/// Whether a host's name or address is that of the loopback interface.
bool is_loopback(const std::string& host);

/// Listens at the address that its host's name has, and at no other of this machine: at the
/// loopback interface alone where no host is named. With an interface, there: its name ("eth0"), an
/// address of this machine, or "all" for every interface, over IPv4 and IPv6. Port 0: any that is
/// free. Throws Error.
TcpSocket listen_at(const Address& address, const std::string& interface_name = "");
std::uint16_t port_of(const TcpSocket& listener);

/// The next one that has called; not open: none has.
TcpSocket accept_from(const TcpSocket& listener);

/// The address of the other end, without its port; "?" where it has gone.
std::string peer_of(const TcpSocket& socket);

/// Not open: nobody answers there (yet). Waits for less than a second. Throws Error where the name
/// is not known.
TcpSocket call(const Address& address);

}  // namespace bubblescope::exec
