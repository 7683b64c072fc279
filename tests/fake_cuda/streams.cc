// Streams run their tasks in order, and after the events for which they wait.
#include "tests/fake_cuda/streams.h"

#include <map>

#include "tests/fake_cuda/activity.h"
#include "tests/fake_cuda/devices.h"

namespace bubblescope::tests::fake_cuda {

namespace {

/// Enqueueing blocks when a stream holds this many tasks.
constexpr std::size_t kMaxQueuedTasks = 1024;

/// The default stream of each device.
Stream& default_stream() {
  static auto& instance = *new std::map<std::int32_t, Stream>;
  Stream& stream = instance[current_device()];
  stream.device = current_device();
  return stream;
}

void capture_task(Stream& stream, Task task, Event* records) {
  Graph& graph = stream.capture->graph;
  graph.push_back(
      {std::move(task), stream.device, {stream.front.begin(), stream.front.end()}, records});
  stream.front = {graph.size() - 1};
}

}  // namespace

std::int64_t next_stream_number() {
  static std::int64_t numbers = 0;
  return ++numbers;
}

Registry<Stream>& streams() {
  static auto& instance = *new Registry<Stream>("streams");
  return instance;
}

Stream& stream_of(cudaStream_t stream, const char* call) {
  if (stream == nullptr || stream == cudaStreamLegacy) return default_stream();
  return streams().find(stream, call);
}

void put(Stream& stream, Task task, Event* records) {
  if (stream.capture != nullptr) return capture_task(stream, std::move(task), records);
  while (!stream.queued.empty() && has_ended(stream.queued.front())) stream.queued.pop_front();
  if (stream.queued.size() >= kMaxQueuedTasks)
    await({stream.queued.front()}, "a call on a stream that is full");
  observe(task, stream);
  const Ticket ticket = start(std::move(task), stream.device, stream.after);
  stream.after = {ticket};
  stream.queued.push_back(ticket);
  if (records == nullptr) return;
  records->ticket = ticket;
  records->was_recorded = true;
}

void await_stream(Stream& stream, const char* call) { await(stream.after, call); }

cudaError_t spoil(Stream& stream, cudaError_t error) {
  if (stream.capture != nullptr) stream.capture->is_over = true;
  return error;
}

}  // namespace bubblescope::tests::fake_cuda

using namespace bubblescope::tests::fake_cuda;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return call("cudaStreamCreateWithFlags", [&] {
    // Streams that synchronize with the default stream are not simulated.
    if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *stream = reinterpret_cast<cudaStream_t>(streams().add({current_device()}));
    return cudaSuccess;
  });
}

/// Work that is still on the stream completes.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&] {
    if (streams().find(stream, "cudaStreamDestroy").capture != nullptr)
      refuse("cudaStreamDestroy: the stream is captured");
    streams().remove(stream, "cudaStreamDestroy");
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", [&] {
    Stream& on = stream_of(stream, "cudaStreamSynchronize");
    if (on.capture != nullptr) return spoil(on, cudaErrorStreamCaptureUnsupported);
    await_stream(on, "cudaStreamSynchronize");
    return device_error();
  });
}
