// CUPTI's activity records of the simulated devices, in buffers of the caller. Refuses what CUPTI
// forbids. With BUBBLESCOPE_FAKE_CUDA_CUPTI_DROPS=1, every buffer loses its last record.
#include <cupti.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/fake_cuda/activity.h"
#include "tests/fake_cuda/calls.h"

namespace bubblescope::tests::fake_cuda {

namespace {

struct Profiler {
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::set<CUpti_ActivityKind> enabled;
  std::set<std::string> names;  ///< kept until the process exits
  std::size_t dropped = 0;
};

Profiler& profiler() {
  static auto& instance = *new Profiler;
  return instance;
}

/// Runs `body` as a CUPTI call, unless the call is made to fail.
template <class Body>
CUptiResult answer(const char* name, const Body& body) {
  if (counts_as_failure(name)) return CUPTI_ERROR_UNKNOWN;
  return body();
}

std::size_t size_of(CUpti_ActivityKind kind) {
  if (kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
    return sizeof(CUpti_ActivityExternalCorrelation);
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return sizeof(CUpti_ActivityKernel10);
  if (kind == CUPTI_ACTIVITY_KIND_MEMCPY) return sizeof(CUpti_ActivityMemcpy6);
  if (kind == CUPTI_ACTIVITY_KIND_MEMSET) return sizeof(CUpti_ActivityMemset4);
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) return sizeof(CUpti_ActivityAPI);
  refuse("a record of a kind that nobody wrote");
}

/// A buffer of the caller that is filled with records.
class Buffer {
 public:
  Buffer() {
    std::size_t max_records = 0;
    profiler().request(&bytes_, &size_, &max_records);
    if (bytes_ == nullptr || reinterpret_cast<std::uintptr_t>(bytes_) % 8 != 0)
      refuse("a buffer for records that is none, or not aligned");
    std::memset(bytes_, 0xee, size_);  // NaN in all that is not written
  }

  template <class Record>
  void add(const Record& record) {
    if (used_ + sizeof record > size_) refuse("more records than these tests have room for");
    std::memcpy(bytes_ + used_, &record, sizeof record);
    used_ += sizeof record;
  }

  void give_back() { profiler().complete(nullptr, 0, bytes_, size_, used_); }

 private:
  std::uint8_t* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

template <class Record>
Record make_record(CUpti_ActivityKind kind, const Activity& activity) {
  Record record;
  std::memset(&record, 0xee, sizeof record);
  record.kind = kind;
  record.start = static_cast<std::uint64_t>(activity.begin);
  record.end = static_cast<std::uint64_t>(activity.end);
  record.deviceId = static_cast<std::uint32_t>(activity.device);
  record.streamId = static_cast<std::uint32_t>(activity.stream);
  record.correlationId = activity.correlation;
  return record;
}

template <class Record>
Record make_sized(CUpti_ActivityKind kind, const Activity& activity) {
  Record record = make_record<Record>(kind, activity);
  record.bytes = static_cast<std::uint64_t>(activity.bytes);
  return record;
}

bool is_on(CUpti_ActivityKind kind) { return profiler().enabled.count(kind) != 0; }

/// CUPTI reports external correlation ids only for records of API calls.
void add_correlation(Buffer& buffer, const Activity& activity) {
  if (!is_on(CUPTI_ACTIVITY_KIND_RUNTIME)) return;
  if (is_on(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION))
    for (const std::uint64_t id : activity.external_ids) {
      CUpti_ActivityExternalCorrelation record{};
      record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
      record.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
      record.externalId = id;
      record.correlationId = activity.correlation;
      buffer.add(record);
    }
  CUpti_ActivityAPI called{};
  called.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  called.correlationId = activity.correlation;
  buffer.add(called);
}

void add_work(Buffer& buffer, const Activity& activity) {
  if (activity.name.starts_with("cudaMemcpy")) {
    if (is_on(CUPTI_ACTIVITY_KIND_MEMCPY))
      buffer.add(make_sized<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, activity));
  } else if (activity.name.starts_with("cudaMemset")) {
    if (is_on(CUPTI_ACTIVITY_KIND_MEMSET))
      buffer.add(make_sized<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, activity));
  } else if (is_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) {
    auto record =
        make_record<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, activity);
    record.name = profiler().names.insert(activity.name).first->c_str();
    buffer.add(record);
  }
}

void flush() {
  std::vector<Activity> activities = take_activities();
  if (std::getenv("BUBBLESCOPE_FAKE_CUDA_CUPTI_DROPS") != nullptr && !activities.empty()) {
    activities.pop_back();
    ++profiler().dropped;
  }
  constexpr std::size_t kPerBuffer = 1000;
  for (std::size_t at = 0; at < activities.size(); at += kPerBuffer) {
    Buffer buffer;
    for (std::size_t each = at; each < std::min(at + kPerBuffer, activities.size()); ++each) {
      add_correlation(buffer, activities[each]);
      add_work(buffer, activities[each]);
    }
    buffer.give_back();
  }
}

}  // namespace

}  // namespace bubblescope::tests::fake_cuda

using namespace bubblescope::tests::fake_cuda;

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  return answer("cuptiGetVersion", [&] {
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "the fake CUPTI fails as it was told";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  return answer("cuptiActivityRegisterCallbacks", [&] {
    profiler().request = request;
    profiler().complete = complete;
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  return answer("cuptiActivityEnable", [&] {
    profiler().enabled.insert(kind);
    begin_to_observe();
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   std::uint64_t id) {
  return answer("cuptiActivityPushExternalCorrelationId", [&] {
    if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) refuse("an external id of a strange kind");
    external_ids().push_back(id);
    return CUPTI_SUCCESS;
  });
}

/// Pops even if the call fails, or a later record would get the wrong id.
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind,
                                                  std::uint64_t* last) {
  if (external_ids().empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  *last = external_ids().back();
  external_ids().pop_back();
  return answer("cuptiActivityPopExternalCorrelationId", [] { return CUPTI_SUCCESS; });
}

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  return answer("cuptiActivityFlushAll", [&] {
    if (profiler().complete == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
    flush();
    return CUPTI_SUCCESS;
  });
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes,
                                       CUpti_Activity** record) {
  auto* const before = reinterpret_cast<std::uint8_t*>(*record);
  std::uint8_t* const next = before == nullptr ? buffer : before + size_of((*record)->kind);
  if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = std::exchange(profiler().dropped, 0);
  return CUPTI_SUCCESS;
}
