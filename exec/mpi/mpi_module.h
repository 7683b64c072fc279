// The interface between the program and its module bubblescope_mpi.so. Only the module is linked to
// MPI, so that the program starts on machines without it. Calls must not overlap.
#pragma once

#include <cstddef>

extern "C" {

/// The rank of this process and the number of processes. `error` is null on success; texts belong
/// to the module and stay valid.
struct BubblescopeMpiWorld {
  int rank;
  int size;
  const char* library;
  const char* error;
};

/// A transfer that has begun. Its bytes must stay in place until it is complete.
struct BubblescopeMpiTransfer {
  void* mpi_request;
  const char* error;
};

/// A message that has arrived but has not been received.
struct BubblescopeMpiMessage {
  void* message;  ///< null: there is none
  int peer;
  std::size_t size;
  const char* error;
};

/// Starts MPI. Call once per process.
BubblescopeMpiWorld bubblescope_mpi_open(void);

/// Begins to send to a rank. Messages with the same tag arrive in order.
BubblescopeMpiTransfer bubblescope_mpi_send(int peer, int tag, const void* bytes, std::size_t size);

/// Looks for a message with this tag, from any rank.
BubblescopeMpiMessage bubblescope_mpi_find(int tag);

/// Begins to receive a message that was found.
BubblescopeMpiTransfer bubblescope_mpi_receive(BubblescopeMpiMessage message, void* bytes);

/// 1: the transfer is complete and its request freed; 0: not yet; -1: it failed.
int bubblescope_mpi_is_done(void* mpi_request);

/// Ends MPI. All processes must call it; each waits for the others.
void bubblescope_mpi_close(void);

}  // extern "C"
