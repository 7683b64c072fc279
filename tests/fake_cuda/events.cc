// Events: record, wait and measure times.
#include <algorithm>

#include "tests/fake_cuda/devices.h"
#include "tests/fake_cuda/streams.h"

namespace bubblescope::tests::fake_cuda {

Registry<Event>& events() {
  static auto& instance = *new Registry<Event>("events");
  return instance;
}

namespace {

Event& event_of(cudaEvent_t event, const char* call) { return events().find(event, call); }

cudaError_t record(cudaEvent_t event, cudaStream_t stream, bool is_external) {
  Event& of = event_of(event, "cudaEventRecord");
  Stream& on = stream_of(stream, "cudaEventRecord");
  if (of.device != on.device) return spoil(on, cudaErrorInvalidResourceHandle);
  if (on.capture == nullptr && is_external) return cudaErrorIllegalState;
  if (on.capture != nullptr && !is_external) {
    of.capture = on.capture;
    of.front = on.front;
    return cudaSuccess;
  }
  if (!is_external) of.capture = nullptr;
  put(on, {"the record of an event"}, &of);
  return cudaSuccess;
}

/// A stream that waits for an event of a capture joins the capture.
cudaError_t join_capture(Stream& stream, const Event& event) {
  if (event.capture->is_over) return cudaErrorCapturedEvent;
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.capture->members.push_back(&stream);
    stream.front.clear();
  }
  if (stream.capture != event.capture) return spoil(stream, cudaErrorStreamCaptureMerge);
  stream.front.insert(event.front.begin(), event.front.end());
  return cudaSuccess;
}

/// The reason why an event has no time; cudaSuccess if it has one.
cudaError_t check_time(const Event& event) {
  if (!event.is_timed || !event.was_recorded) return cudaErrorInvalidResourceHandle;
  if (event.capture != nullptr) return cudaErrorCapturedEvent;
  return has_ended(event.ticket) ? cudaSuccess : cudaErrorNotReady;
}

}  // namespace

}  // namespace bubblescope::tests::fake_cuda

using namespace bubblescope::tests::fake_cuda;

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return call("cudaEventCreateWithFlags", [&] {
    if ((flags & ~static_cast<unsigned int>(cudaEventDisableTiming | cudaEventBlockingSync)) != 0)
      return cudaErrorInvalidValue;
    *event = reinterpret_cast<cudaEvent_t>(
        events().add({current_device(), (flags & cudaEventDisableTiming) == 0}));
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", [&] {
    events().remove(event, "cudaEventDestroy");
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&] { return record(event, stream, false); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return call("cudaEventRecordWithFlags", [&] {
    if (flags > cudaEventRecordExternal) return cudaErrorInvalidValue;
    return record(event, stream, flags == cudaEventRecordExternal);
  });
}

/// Waiting for an event that was never recorded does nothing.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return call("cudaStreamWaitEvent", [&] {
    const Event& of = event_of(event, "cudaStreamWaitEvent");
    Stream& on = stream_of(stream, "cudaStreamWaitEvent");
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    if (of.capture != nullptr) return join_capture(on, of);
    if (on.capture != nullptr) return spoil(on, cudaErrorStreamCaptureIsolation);
    if (of.ticket != nullptr) on.after.push_back(of.ticket);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [&] {
    const Event& of = event_of(event, "cudaEventQuery");
    if (of.capture != nullptr) return cudaErrorCapturedEvent;
    return has_ended(of.ticket) ? device_error() : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return call("cudaEventElapsedTime", [&] {
    const Event& first = event_of(from, "cudaEventElapsedTime");
    const Event& second = event_of(to, "cudaEventElapsedTime");
    if (first.device != second.device) return cudaErrorInvalidResourceHandle;
    for (const Event* const event : {&first, &second})
      if (const cudaError_t status = check_time(*event); status != cudaSuccess) return status;
    *milliseconds =
        static_cast<float>(static_cast<double>(end_of(second.ticket) - end_of(first.ticket)) / 1e6);
    return cudaSuccess;
  });
}
