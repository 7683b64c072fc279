// The NCCL module: a table of NCCL's calls.
#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "exec/gpu/device/cuda_calls.cuh"
#include "exec/nccl/calls.h"

namespace bubblescope::exec {

namespace {

struct Communicator {
  ncclComm_t comm = nullptr;
  std::int32_t device = 0;
  bool aborted = false;
};

/// How long the destruction of a communicator may wait for the other members.
constexpr std::chrono::seconds kDestroyTimeout{5};

const char* keep(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

/// Returns the text of an error; null for success and for a call in progress.
const char* check_nccl(ncclResult_t status, const char* call) {
  if (status == ncclSuccess || status == ncclInProgress) return nullptr;
  std::string text = std::string("NCCL: ") + call + ": " + ncclGetErrorString(status);
  const char* const last = ncclGetLastError(nullptr);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return keep(text);
}

const char* check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return nullptr;
  return keep(std::string(call) + ": " + cudaGetErrorString(status));
}

Communicator& of(void* handle) { return *static_cast<Communicator*>(handle); }
cudaStream_t stream_of(void* handle) { return static_cast<CudaStream*>(handle)->stream; }

/// The maximum thread blocks per communicator. A transfer that waits for its peer keeps its blocks
/// busy, and compute ops cannot use them. NCCL_MAX_CTAS overrides this.
constexpr int kMaxBlocks = 4;

ncclConfig_t make_config() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = kMaxBlocks;
  config.splitShare = 0;  // links that share resources would wait for each other
  return config;
}

const char* version(std::int32_t* version) {
  int found = 0;
  const ncclResult_t status = ncclGetVersion(&found);
  *version = found;
  return check_nccl(status, "ncclGetVersion");
}

const char* get_pci_bus_id(std::int32_t device, char name[32]) {
  return check_cuda(cudaDeviceGetPCIBusId(name, 32, device), "cudaDeviceGetPCIBusId");
}

const char* get_unique_id(BubblescopeNcclId* id) {
  static_assert(sizeof(ncclUniqueId) == sizeof(BubblescopeNcclId));
  return check_nccl(ncclGetUniqueId(reinterpret_cast<ncclUniqueId*>(id)), "ncclGetUniqueId");
}

const char* join(std::int32_t device, std::int32_t rank, std::int32_t count,
                 const BubblescopeNcclId* id, void** communicator) {
  if (const char* const error = check_cuda(cudaSetDevice(device), "cudaSetDevice")) return error;
  std::unique_ptr<Communicator> made(new (std::nothrow) Communicator{nullptr, device, false});
  if (!made) return "out of memory";
  ncclConfig_t config = make_config();
  const ncclResult_t status = ncclCommInitRankConfig(
      &made->comm, count, *reinterpret_cast<const ncclUniqueId*>(id), rank, &config);
  if (const char* const error = check_nccl(status, "ncclCommInitRankConfig")) return error;
  *communicator = made.release();
  return nullptr;
}

/// NCCL stores the new communicator when the split is complete, so `part->comm` must stay in place
/// until then.
const char* split(void* from, std::int32_t color, std::int32_t rank, void** made) {
  *made = nullptr;
  ncclConfig_t config = make_config();
  if (color == kBubblescopeNoColor) {
    static ncclComm_t no_comm = nullptr;
    return check_nccl(ncclCommSplit(of(from).comm, NCCL_SPLIT_NOCOLOR, rank, &no_comm, &config),
                      "ncclCommSplit");
  }
  std::unique_ptr<Communicator> part(new (std::nothrow)
                                         Communicator{nullptr, of(from).device, false});
  if (!part) return "out of memory";
  const ncclResult_t status = ncclCommSplit(of(from).comm, color, rank, &part->comm, &config);
  if (const char* const error = check_nccl(status, "ncclCommSplit")) return error;
  *made = part.release();
  return nullptr;
}

const char* get_async_error(void* communicator, std::int32_t* under_way) {
  *under_way = 0;
  if (of(communicator).comm == nullptr) return nullptr;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t status = ncclCommGetAsyncError(of(communicator).comm, &state);
  if (const char* const error = check_nccl(status, "ncclCommGetAsyncError")) return error;
  *under_way = state == ncclInProgress ? 1 : 0;
  return check_nccl(state, "an operation in progress");
}

void abort(void* communicator) {
  Communicator& comm = of(communicator);
  if (comm.comm != nullptr && !comm.aborted) ncclCommAbort(comm.comm);
  comm.aborted = true;
}

void await_destroy(ncclComm_t comm) {
  const auto end = std::chrono::steady_clock::now() + kDestroyTimeout;
  ncclResult_t state = ncclInProgress;
  while (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (state == ncclSuccess)
    ncclCommDestroy(comm);
  else
    ncclCommAbort(comm);
}

/// Destroys a communicator together with the other members, or aborts it if a call is in progress
/// or has failed. A split in progress may still write to its Communicator, which is then leaked on
/// purpose.
void release(void* communicator) {
  if (of(communicator).comm == nullptr) return;
  const std::unique_ptr<Communicator> comm(&of(communicator));
  if (comm->aborted) return;
  cudaSetDevice(comm->device);
  ncclResult_t state = ncclInProgress;
  ncclCommGetAsyncError(comm->comm, &state);
  if (state != ncclSuccess) return abort(comm.get());
  ncclCommFinalize(comm->comm);
  await_destroy(comm->comm);
}

const char* group_start() { return check_nccl(ncclGroupStart(), "ncclGroupStart"); }
const char* group_end() { return check_nccl(ncclGroupEnd(), "ncclGroupEnd"); }

const char* send(void* communicator, const void* from, std::size_t bytes, std::int32_t peer,
                 void* stream) {
  return check_nccl(
      ncclSend(from, bytes, ncclUint8, peer, of(communicator).comm, stream_of(stream)), "ncclSend");
}

const char* receive(void* communicator, void* to, std::size_t bytes, std::int32_t peer,
                    void* stream) {
  return check_nccl(ncclRecv(to, bytes, ncclUint8, peer, of(communicator).comm, stream_of(stream)),
                    "ncclRecv");
}

const char* sum(void* communicator, void* values, std::size_t count, void* stream) {
  return check_nccl(ncclAllReduce(values, values, count, ncclFloat32, ncclSum,
                                  of(communicator).comm, stream_of(stream)),
                    "ncclAllReduce");
}

const char* reduce(void* communicator, void* values, std::size_t count, std::int32_t member,
                   void* stream) {
  return check_nccl(ncclReduce(values, values, count, ncclFloat32, ncclSum, member,
                               of(communicator).comm, stream_of(stream)),
                    "ncclReduce");
}

const char* broadcast(void* communicator, void* data, std::size_t bytes, std::int32_t member,
                      void* stream) {
  return check_nccl(
      ncclBroadcast(data, data, bytes, ncclUint8, member, of(communicator).comm, stream_of(stream)),
      "ncclBroadcast");
}

constexpr BubblescopeNccl kCalls{
    version,     get_pci_bus_id, get_unique_id, join,    split, get_async_error, abort,    release,
    group_start, group_end,      send,          receive, sum,   reduce,          broadcast};

}  // namespace

}  // namespace bubblescope::exec

extern "C" const BubblescopeNccl* bubblescope_open_nccl(const char** error) {
  int found = 0;
  *error = bubblescope::exec::check_nccl(ncclGetVersion(&found), "ncclGetVersion");
  return *error == nullptr ? &bubblescope::exec::kCalls : nullptr;
}
