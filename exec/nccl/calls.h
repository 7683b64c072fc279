// What the program and its NCCL module, bubblescope_nccl.so, know of each other. The module alone
// is linked to NCCL, so that only who runs several processes on GPUs needs it; tests put a table of
// their own here.
//
// Communicators do not block: a call that answers null may still be under way, and ask() tells when
// it is over. Errors are words that stay until the thread's next call. Streams are those of
// bubblescope_cuda.so.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

/// What the members of a communicator have to know of each other before it is there.
struct BubblescopeNcclId {
  unsigned char bytes[128];
};

/// The color of a rank that is in no group of a split.
enum : std::int32_t { kBubblescopeNoColor = -1 };

struct BubblescopeNccl {
  const char* (*version)(std::int32_t* version);  ///< 22809 for 2.28.9
  /// The device's place on its host: "0000:1b:00.0".
  const char* (*get_pci_bus_id)(std::int32_t device, char name[32]);

  const char* (*get_unique_id)(BubblescopeNcclId* id);
  const char* (*join)(std::int32_t device, std::int32_t rank, std::int32_t count,
                      const BubblescopeNcclId* id, void** communicator);
  /// The members of one color, by rank. The made one may be used when ask() says that nothing is
  /// under way at `from`; for a rank without color it is null.
  const char* (*split)(void* from, std::int32_t color, std::int32_t rank, void** made);
  /// Whether a call is still under way; also tells what went wrong since, here or elsewhere.
  const char* (*get_async_error)(void* communicator, std::int32_t* under_way);
  /// Ends what is under way, and what is on streams, without the others.
  void (*abort)(void* communicator);
  /// After abort(), or when nothing is on streams any more.
  void (*release)(void* communicator);

  const char* (*group_start)();
  const char* (*group_end)();
  const char* (*send)(void* communicator, const void* from, std::size_t bytes, std::int32_t peer,
                      void* stream);
  const char* (*receive)(void* communicator, void* to, std::size_t bytes, std::int32_t peer,
                         void* stream);
  /// float32, in place.
  const char* (*sum)(void* communicator, void* values, std::size_t count, void* stream);
  /// The same, for one member alone: what the others have there is lost.
  const char* (*reduce)(void* communicator, void* values, std::size_t count, std::int32_t member,
                        void* stream);
  /// One member's bytes for all, in place.
  const char* (*broadcast)(void* communicator, void* data, std::size_t bytes, std::int32_t member,
                           void* stream);
};

/// Returns the module's table, or null and an error message.
const BubblescopeNccl* bubblescope_open_nccl(const char** error);

}  // extern "C"
