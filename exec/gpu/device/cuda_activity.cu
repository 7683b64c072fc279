// CUPTI activity records. The library comes with the toolkit and is loaded only if activity is
// recorded.
#include "exec/gpu/device/cuda_calls.cuh"
#include "exec/runtime/library_call.h"

#if __has_include(<cupti.h>)
#include <cupti.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>
#define BUBBLESCOPE_HAS_CUPTI
#endif

namespace bubblescope::exec {

#ifdef BUBBLESCOPE_HAS_CUPTI

namespace {

/// CUPTI advises buffers of 1 to 10 MB, aligned to 8 bytes as by malloc.
constexpr std::size_t kBufferBytes = 8 << 20;

/// Marks our correlation ids among those of other users of CUPTI.
constexpr CUpti_ExternalCorrelationKind kCorrelationKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

/// CUPTI reports external correlation ids only with records of API calls, so these are enabled too,
/// and dropped. Copies between devices have a kind of their own.
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_DRIVER,               CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,               CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET};

struct Cupti {
  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetResultString) get_result_string = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) get_next = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) get_dropped = nullptr;
};

/// Kernel names belong to CUPTI and may be freed with their module, so they are copied.
struct OwnedActivity {
  BubblescopeActivity raw;
  std::string name;
};

/// Records that CUPTI has delivered, from any of its threads.
struct RecordStore {
  std::mutex mutex;
  std::vector<OwnedActivity> records;
  std::int64_t lost = 0;
};

Cupti cupti;
bool is_on = false;

/// Never destroyed: CUPTI may deliver buffers while the process exits.
RecordStore& record_store() {
  static RecordStore& instance = *new RecordStore;
  return instance;
}

const char* check_cupti(CUptiResult status, const char* call) {
  if (status == CUPTI_SUCCESS) return nullptr;
  const char* why = nullptr;
  cupti.get_result_string(status, &why);
  return store_error(std::string(call) + ": " + (why != nullptr ? why : "?"));
}

template <class Record>
BubblescopeActivity describe(const CUpti_Activity* record, std::int32_t kind) {
  const auto* const at = reinterpret_cast<const Record*>(record);
  BubblescopeActivity raw{};
  raw.kind = kind;
  raw.device = static_cast<std::int32_t>(at->deviceId);
  raw.stream = at->streamId;
  raw.correlation = at->correlationId;
  raw.start = static_cast<std::int64_t>(at->start);
  raw.end = static_cast<std::int64_t>(at->end);
  return raw;
}

template <class Record>
OwnedActivity store_copy(const CUpti_Activity* record, std::int32_t kind) {
  BubblescopeActivity raw = describe<Record>(record, kind);
  raw.bytes = static_cast<std::int64_t>(reinterpret_cast<const Record*>(record)->bytes);
  return {raw, ""};
}

OwnedActivity store_kernel(const CUpti_Activity* record) {
  const char* const name = reinterpret_cast<const CUpti_ActivityKernel10*>(record)->name;
  return {describe<CUpti_ActivityKernel10>(record, kBubblescopeKernel),
          name != nullptr ? name : "?"};
}

OwnedActivity store_correlation(const CUpti_Activity* record) {
  const auto* const at = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
  BubblescopeActivity raw{};
  raw.kind = kBubblescopeLaunchedBy;
  raw.correlation = at->correlationId;
  raw.tag = at->externalId;
  return {raw, ""};
}

void store_record(const CUpti_Activity* record, std::vector<OwnedActivity>& owned) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return owned.push_back(store_correlation(record));
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return owned.push_back(store_kernel(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return owned.push_back(store_copy<CUpti_ActivityMemcpy6>(record, kBubblescopeCopy));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return owned.push_back(store_copy<CUpti_ActivityMemcpyPtoP4>(record, kBubblescopeCopy));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return owned.push_back(store_copy<CUpti_ActivityMemset4>(record, kBubblescopeClear));
    default: return;  // API calls
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::malloc(kBufferBytes));
  *bytes = *buffer != nullptr ? kBufferBytes : 0;
  *max_records = 0;  // 0 means as many as fit
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t valid_bytes) {
  const std::lock_guard lock(record_store().mutex);
  try {
    CUpti_Activity* record = nullptr;
    CUptiResult status = CUPTI_SUCCESS;
    while ((status = cupti.get_next(buffer, valid_bytes, &record)) == CUPTI_SUCCESS)
      store_record(record, record_store().records);
    if (status != CUPTI_ERROR_MAX_LIMIT_REACHED) ++record_store().lost;  // at least one
  } catch (const std::bad_alloc&) {
    ++record_store().lost;  // at least one
  }
  std::size_t dropped = 0;
  if (cupti.get_dropped(nullptr, 0, &dropped) == CUPTI_SUCCESS)
    record_store().lost += static_cast<std::int64_t>(dropped);
  std::free(buffer);
}

bool find_all(void* library) {
  return find_call(library, "cuptiGetVersion", cupti.get_version) &&
         find_call(library, "cuptiGetResultString", cupti.get_result_string) &&
         find_call(library, "cuptiActivityRegisterCallbacks", cupti.register_callbacks) &&
         find_call(library, "cuptiActivityEnable", cupti.enable) &&
         find_call(library, "cuptiActivityPushExternalCorrelationId", cupti.push) &&
         find_call(library, "cuptiActivityPopExternalCorrelationId", cupti.pop) &&
         find_call(library, "cuptiActivityFlushAll", cupti.flush) &&
         find_call(library, "cuptiActivityGetNextRecord", cupti.get_next) &&
         find_call(library, "cuptiActivityGetNumDroppedRecords", cupti.get_dropped);
}

/// An older CUPTI may have shorter records than those that are read here.
const char* open_cupti() {
  const std::string major = std::to_string(CUDART_VERSION / 1000);
  void* const library = open_library({"libcupti.so." + major, "libcupti.so"});
  if (library == nullptr)
    return store_error("libcupti.so." + major +
                       " was not found; add the folder of the CUDA toolkit's CUPTI "
                       "(extras/CUPTI/lib64) to LD_LIBRARY_PATH");
  if (!find_all(library)) return store_error("libcupti.so lacks a required function");
  std::uint32_t version = 0;
  if (const char* const error = check_cupti(cupti.get_version(&version), "cuptiGetVersion"))
    return error;
  if (version >= CUPTI_API_VERSION) return nullptr;
  return store_error("libcupti.so has version " + std::to_string(version) + ", and " +
              std::to_string(CUPTI_API_VERSION) + " is needed; put a newer one first in "
              "LD_LIBRARY_PATH");
}

const char* start_activity() {
  if (is_on) return nullptr;
  if (const char* const error = open_cupti()) return error;
  if (const char* const error =
          check_cupti(cupti.register_callbacks(give_buffer, take_buffer),
                      "cuptiActivityRegisterCallbacks"))
    return error;
  for (const CUpti_ActivityKind kind : kKinds)
    if (const char* const error = check_cupti(cupti.enable(kind), "cuptiActivityEnable"))
      return error;
  is_on = true;
  return nullptr;
}

const char* tag(std::uint64_t tag) {
  if (tag != 0)
    return check_cupti(cupti.push(kCorrelationKind, tag), "cuptiActivityPushExternalCorrelationId");
  std::uint64_t last = 0;
  return check_cupti(cupti.pop(kCorrelationKind, &last), "cuptiActivityPopExternalCorrelationId");
}

/// All work must have ended, so that every record has its end time.
const char* read_activity(BubblescopeTakeActivity take, void* to, std::int64_t* lost) {
  if (const char* const error = check_cupti(cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
                                            "cuptiActivityFlushAll"))
    return error;
  const std::lock_guard lock(record_store().mutex);
  for (OwnedActivity& owned : record_store().records) {
    if (owned.raw.kind == kBubblescopeKernel) owned.raw.name = owned.name.c_str();
    take(to, &owned.raw);
  }
  record_store().records.clear();
  *lost = std::exchange(record_store().lost, 0);
  return nullptr;
}

}  // namespace

#else

namespace {

const char* start_activity() {
  return store_error(
      "this build has no CUPTI; install CUPTI from the CUDA toolkit and build again");
}
const char* tag(std::uint64_t) { return nullptr; }
const char* read_activity(BubblescopeTakeActivity, void*, std::int64_t* lost) {
  *lost = 0;
  return nullptr;
}

}  // namespace

#endif

void add_activity_calls(BubblescopeGpu& calls) {
  calls.start_activity = start_activity;
  calls.tag = tag;
  calls.read_activity = read_activity;
}

}  // namespace bubblescope::exec
