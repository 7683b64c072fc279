// What the program and its module bubblescope_mpi.so know of each other. The module alone is linked
// to MPI, so that the program starts where there is none. Calls must not overlap.
#pragma once

#include <cstddef>

extern "C" {

/// All processes that were started together. `error` is null where all went well; texts belong to
/// the module and stay.
struct BubblescopeMpiWorld {
  int rank;
  int size;
  const char* library;
  const char* error;
};

/// A transfer that was begun; its bytes must stay where they are until it is done.
struct BubblescopeMpiTransfer {
  void* mpi_request;
  const char* error;
};

/// A message that has come and waits to be received.
struct BubblescopeMpiMessage {
  void* message;  ///< null: there is none
  int peer;
  std::size_t size;
  const char* error;
};

/// Starts MPI. Once per process.
BubblescopeMpiWorld bubblescope_mpi_open(void);

/// Begins to send to a rank. Messages of one channel arrive in their order.
BubblescopeMpiTransfer bubblescope_mpi_send(int peer, int tag, const void* bytes, std::size_t size);

/// Looks for a message on a channel, from any rank.
BubblescopeMpiMessage bubblescope_mpi_find(int tag);

/// Begins to receive what was found.
BubblescopeMpiTransfer bubblescope_mpi_receive(BubblescopeMpiMessage message, void* bytes);

/// 1: the transfer is done and its ticket gone; 0: not yet; -1: it failed.
int bubblescope_mpi_is_done(void* mpi_request);

/// Ends MPI. All processes must come here; each waits for the others.
void bubblescope_mpi_close(void);

}  // extern "C"
