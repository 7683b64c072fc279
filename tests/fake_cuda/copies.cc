// Copies and memory sets.
#include <cstring>

#include "tests/fake_cuda/memory.h"
#include "tests/fake_cuda/streams.h"

using namespace bubblescope::tests::fake_cuda;

namespace {

/// Pageable memory may only be on one side of a copy, and the host has to wait for that copy.
void expect_copyable(const void* memory, std::size_t bytes, const char* call) {
  if (find_piece(memory) != nullptr) expect_inside(memory, bytes, call);
}

}  // namespace

/// Runs on the default stream, with which our streams do not synchronize.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&] {
    if (kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    expect_copyable(to, bytes, "cudaMemcpy");
    expect_copyable(from, bytes, "cudaMemcpy");
    Stream& stream = stream_of(nullptr, "cudaMemcpy");
    put(stream, {"cudaMemcpy", [=] { std::memcpy(to, from, bytes); }});
    await_stream(stream, "cudaMemcpy");
    return device_error();
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&] {
    Stream& on = stream_of(stream, "cudaMemcpyAsync");
    if (kind != cudaMemcpyDefault) return spoil(on, cudaErrorInvalidMemcpyDirection);
    expect_inside(to, bytes, "cudaMemcpyAsync, to");
    expect_inside(from, bytes, "cudaMemcpyAsync, from");
    put(on, {"cudaMemcpyAsync",
             [=] { std::memcpy(to, from, bytes); },
             {},
             static_cast<std::int64_t>(bytes)});
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] {
    expect_inside(memory, bytes, "cudaMemsetAsync");
    put(stream_of(stream, "cudaMemsetAsync"), {"cudaMemsetAsync",
                                               [=] { std::memset(memory, value, bytes); },
                                               {},
                                               static_cast<std::int64_t>(bytes)});
    return cudaSuccess;
  });
}
