// The module bubblescope_mpi.so: the only file that is linked to MPI.
#include "exec/mpi/mpi_module.h"

#include <mpi.h>

#include <array>
#include <memory>
#include <new>

namespace {

constexpr std::size_t kMaxBytes = 0x7fffffff;

/// A communicator of our own, which returns errors instead of ending the program.
MPI_Comm& world() {
  static MPI_Comm communicator = MPI_COMM_NULL;
  return communicator;
}

/// Returns the text of an error code; null for success.
const char* text_of(int code) {
  static std::array<char, MPI_MAX_ERROR_STRING + 1> text;
  if (code == MPI_SUCCESS) return nullptr;
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return text.data();
}

const char* library() {
  static std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> name;
  int length = 0;
  MPI_Get_library_version(name.data(), &length);
  for (char& letter : name)
    if (letter == ',' || letter == '\n') letter = '\0';
  return name.data();
}

BubblescopeMpiTransfer begun(int code, std::unique_ptr<MPI_Request> request) {
  if (code != MPI_SUCCESS) return {nullptr, text_of(code)};
  return {request.release(), nullptr};
}

}  // namespace

BubblescopeMpiWorld bubblescope_mpi_open(void) {
  BubblescopeMpiWorld opened{0, 1, library(), nullptr};
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    opened.error = "MPI_Init_thread failed";
  else if (provided < MPI_THREAD_SERIALIZED)
    opened.error = "it does not support calls from several threads (MPI_THREAD_SERIALIZED)";
  if (opened.error != nullptr) return opened;
  opened.error = text_of(MPI_Comm_dup(MPI_COMM_WORLD, &world()));
  if (opened.error == nullptr)
    opened.error = text_of(MPI_Comm_set_errhandler(world(), MPI_ERRORS_RETURN));
  if (opened.error == nullptr) opened.error = text_of(MPI_Comm_rank(world(), &opened.rank));
  if (opened.error == nullptr) opened.error = text_of(MPI_Comm_size(world(), &opened.size));
  return opened;
}

BubblescopeMpiTransfer bubblescope_mpi_send(int peer, int tag, const void* bytes,
                                            std::size_t size) {
  if (size > kMaxBytes)
    return {nullptr, "a message of more than 2 GiB; take smaller micro-batches"};
  std::unique_ptr<MPI_Request> request(new (std::nothrow) MPI_Request(MPI_REQUEST_NULL));
  if (!request) return {nullptr, "out of memory"};
  const int code =
      MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, peer, tag, world(), request.get());
  return begun(code, std::move(request));
}

BubblescopeMpiMessage bubblescope_mpi_find(int tag) {
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  const int code = MPI_Improbe(MPI_ANY_SOURCE, tag, world(), &found, &message, &status);
  if (code != MPI_SUCCESS) return {nullptr, 0, 0, text_of(code)};
  if (found == 0) return {nullptr, 0, 0, nullptr};
  int size = 0;
  const int counted = MPI_Get_count(&status, MPI_BYTE, &size);
  if (counted != MPI_SUCCESS) return {nullptr, 0, 0, text_of(counted)};
  auto* const kept = new (std::nothrow) MPI_Message(message);
  if (kept == nullptr) return {nullptr, 0, 0, "out of memory"};
  return {kept, status.MPI_SOURCE, static_cast<std::size_t>(size), nullptr};
}

BubblescopeMpiTransfer bubblescope_mpi_receive(BubblescopeMpiMessage message, void* bytes) {
  const std::unique_ptr<MPI_Message> kept(static_cast<MPI_Message*>(message.message));
  std::unique_ptr<MPI_Request> request(new (std::nothrow) MPI_Request(MPI_REQUEST_NULL));
  if (!request) return {nullptr, "out of memory"};
  const int code =
      MPI_Imrecv(bytes, static_cast<int>(message.size), MPI_BYTE, kept.get(), request.get());
  return begun(code, std::move(request));
}

int bubblescope_mpi_is_done(void* mpi_request) {
  auto* const request = static_cast<MPI_Request*>(mpi_request);
  int done = 0;
  if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return -1;
  if (done != 0) delete request;
  return done;
}

void bubblescope_mpi_close(void) { MPI_Finalize(); }
