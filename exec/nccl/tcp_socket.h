// TCP sockets that never block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "exec/runtime/blob.h"

namespace bubblescope::exec {

/// A host and a port.
struct Address {
  std::string host;
  std::uint16_t port = 0;

  bool operator==(const Address&) const = default;
};

/// Returns a text such as "host:1234".
std::string to_string(const Address& address);

/// Parses "host:1234" or "[::1]:1234". Throws Error whose message begins with `what`.
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

  /// Sends as many bytes as possible without blocking, and returns their number; empty if the
  /// connection has ended.
  std::optional<std::size_t> write(std::span<const std::byte> bytes) const;

  /// Returns the bytes that have arrived, perhaps none; empty if the connection has ended.
  std::optional<Blob> read() const;

 private:
  int descriptor_ = -1;
};

/// Whether a host's name or address is that of the loopback interface.
bool is_loopback(const std::string& host);

/// Listens at the address to which the host's name resolves, or at the loopback interface if there
/// is no name. `interface_name` selects another: "eth0", an address of this machine, or "all" for
/// every interface, over IPv4 and IPv6. Port 0 picks a free one. Throws Error.
TcpSocket listen_at(const Address& address, const std::string& interface_name = "");
std::uint16_t port_of(const TcpSocket& listener);

/// Accepts the next connection; not open if there is none.
TcpSocket accept_from(const TcpSocket& listener);

/// The address of the other end, without its port; "?" if the connection has ended.
std::string peer_of(const TcpSocket& socket);

/// Connects to an address, waiting for less than a second; not open if there is no answer. Throws
/// Error if the host name cannot be resolved.
TcpSocket connect_to(const Address& address);

}  // namespace bubblescope::exec
