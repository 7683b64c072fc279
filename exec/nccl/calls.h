// The interface between the program and its module bubblescope_nccl.so. Only the module is linked
// to NCCL, so that the program also runs without it; tests use a table of their own instead.
//
// Communicators do not block: a call that returns null may still be in progress, and
// get_async_error() reports when it is complete. An error is a text that stays valid until the
// thread's next call. Streams are those of bubblescope_cuda.so.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

/// The unique id that all members of a communicator need to join it.
struct BubblescopeNcclId {
  unsigned char bytes[128];
};

/// The color of a rank that joins none of the groups of a split.
enum : std::int32_t { kBubblescopeNoColor = -1 };

struct BubblescopeNccl {
  const char* (*version)(std::int32_t* version);  ///< 22809 for 2.28.9
  /// The PCI bus id of a device: "0000:1b:00.0".
  const char* (*get_pci_bus_id)(std::int32_t device, char name[32]);

  const char* (*get_unique_id)(BubblescopeNcclId* id);
  const char* (*join)(std::int32_t device, std::int32_t rank, std::int32_t count,
                      const BubblescopeNcclId* id, void** communicator);
  /// Makes a communicator of all members with the same color, by rank. It may be used when
  /// get_async_error() reports that nothing is in progress at `from`. Null for a rank without
  /// color.
  const char* (*split)(void* from, std::int32_t color, std::int32_t rank, void** made);
  /// Whether a call is still in progress. Returns an error that has occurred since, on any rank.
  const char* (*get_async_error)(void* communicator, std::int32_t* under_way);
  /// Aborts all calls and all work on streams, without waiting for other ranks.
  void (*abort)(void* communicator);
  /// Call after abort(), or when no work is left on streams.
  void (*release)(void* communicator);

  const char* (*group_start)();
  const char* (*group_end)();
  const char* (*send)(void* communicator, const void* from, std::size_t bytes, std::int32_t peer,
                      void* stream);
  const char* (*receive)(void* communicator, void* to, std::size_t bytes, std::int32_t peer,
                         void* stream);
  /// Sums float32 values over all members, in place (all-reduce).
  const char* (*sum)(void* communicator, void* values, std::size_t count, void* stream);
  /// Sums values for one member only (reduce). Those of the others are overwritten.
  const char* (*reduce)(void* communicator, void* values, std::size_t count, std::int32_t member,
                        void* stream);
  /// Copies one member's bytes to all, in place (broadcast).
  const char* (*broadcast)(void* communicator, void* data, std::size_t bytes, std::int32_t member,
                           void* stream);
};

/// Returns the module's table, or null and an error message.
const BubblescopeNccl* bubblescope_open_nccl(const char** error);

}  // extern "C"
