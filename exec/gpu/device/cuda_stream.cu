// Implements streams, events, graphs and copies.
#include "exec/gpu/device/cuda_calls.cuh"

namespace bubblescope::exec {

namespace {

cudaStream_t stream_of(void* stream) { return static_cast<CudaStream*>(stream)->stream; }

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

const char* create_event(std::int32_t device, std::int32_t timed, void** event) {
  BUBBLESCOPE_CUDA(cudaSetDevice(device));
  cudaEvent_t created = nullptr;
  BUBBLESCOPE_CUDA(
      cudaEventCreateWithFlags(&created, timed != 0 ? cudaEventDefault : cudaEventDisableTiming));
  *event = created;
  return nullptr;
}

void release_event(void* event) {
  if (may_release()) cudaEventDestroy(event_of(event));
}

void release_stream(void* stream) {
  if (may_release()) cudaStreamDestroy(stream_of(stream));
  delete static_cast<CudaStream*>(stream);
}

const char* record(void* event, void* stream) {
  BUBBLESCOPE_CUDA(cudaSetDevice(static_cast<CudaStream*>(stream)->device));
  BUBBLESCOPE_CUDA(cudaEventRecord(event_of(event), stream_of(stream)));
  return nullptr;
}

const char* record_in_graph(void* event, void* stream) {
  BUBBLESCOPE_CUDA(cudaSetDevice(static_cast<CudaStream*>(stream)->device));
  BUBBLESCOPE_CUDA(
      cudaEventRecordWithFlags(event_of(event), stream_of(stream), cudaEventRecordExternal));
  return nullptr;
}

const char* wait(void* stream, void* event) {
  BUBBLESCOPE_CUDA(cudaSetDevice(static_cast<CudaStream*>(stream)->device));
  BUBBLESCOPE_CUDA(cudaStreamWaitEvent(stream_of(stream), event_of(event), cudaEventWaitDefault));
  return nullptr;
}

const char* query(void* event, std::int32_t* ended) {
  const cudaError_t status = cudaEventQuery(event_of(event));
  *ended = status == cudaSuccess ? 1 : 0;
  if (status == cudaErrorNotReady) return nullptr;
  return check(status, "cudaEventQuery");
}

const char* elapsed(void* from, void* to, double* nanos) {
  float milliseconds = 0;
  BUBBLESCOPE_CUDA(cudaEventElapsedTime(&milliseconds, event_of(from), event_of(to)));
  *nanos = static_cast<double>(milliseconds) * 1e6;
  return nullptr;
}

/// In relaxed mode, a capture may load kernels and allocate memory.
const char* begin_capture(void* stream) {
  BUBBLESCOPE_CUDA(cudaSetDevice(static_cast<CudaStream*>(stream)->device));
  BUBBLESCOPE_CUDA(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeRelaxed));
  return nullptr;
}

const char* end_capture(void* stream, void** graph) {
  BUBBLESCOPE_CUDA(cudaSetDevice(static_cast<CudaStream*>(stream)->device));
  cudaGraph_t captured = nullptr;
  BUBBLESCOPE_CUDA(cudaStreamEndCapture(stream_of(stream), &captured));
  cudaGraphExec_t created = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&created, captured, 0);
  cudaGraphDestroy(captured);
  if (const char* const error = check(status, "cudaGraphInstantiate")) return error;
  const char* const error = check(cudaGraphUpload(created, stream_of(stream)), "cudaGraphUpload");
  if (error != nullptr)
    cudaGraphExecDestroy(created);
  else
    *graph = created;
  return error;
}

const char* launch_graph(void* graph, void* stream) {
  BUBBLESCOPE_CUDA(cudaSetDevice(static_cast<CudaStream*>(stream)->device));
  BUBBLESCOPE_CUDA(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(stream)));
  return nullptr;
}

void release_graph(void* graph) {
  if (may_release()) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
}

const char* copy(void* to, const void* from, std::size_t bytes, void* stream) {
  BUBBLESCOPE_CUDA(cudaSetDevice(static_cast<CudaStream*>(stream)->device));
  BUBBLESCOPE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
  return nullptr;
}

const char* clear(void* memory, std::size_t bytes, void* stream) {
  BUBBLESCOPE_CUDA(cudaSetDevice(static_cast<CudaStream*>(stream)->device));
  BUBBLESCOPE_CUDA(cudaMemsetAsync(memory, 0, bytes, stream_of(stream)));
  return nullptr;
}

}  // namespace

void add_stream_calls(BubblescopeGpu& calls) {
  calls.release_stream = release_stream;
  calls.create_event = create_event;
  calls.release_event = release_event;
  calls.record = record;
  calls.record_in_graph = record_in_graph;
  calls.wait = wait;
  calls.query = query;
  calls.elapsed = elapsed;
  calls.begin_capture = begin_capture;
  calls.end_capture = end_capture;
  calls.launch_graph = launch_graph;
  calls.release_graph = release_graph;
  calls.copy = copy;
  calls.clear = clear;
}

}  // namespace bubblescope::exec
