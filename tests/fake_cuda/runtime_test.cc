// The simulated CUDA runtime follows the rules of the real one, and enforces them.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/fake_cuda/streams.h"

namespace bubblescope::tests::fake_cuda {
namespace {

constexpr std::size_t kBytes = 100;

cudaStream_t create_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

cudaEvent_t create_event() {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDefault), cudaSuccess);
  return event;
}

void* allocate() {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
  return memory;
}

/// Launches a kernel that runs until the host opens its gate.
void launch_gated(cudaStream_t stream, const volatile std::uint32_t* gate) {
  put(stream_of(stream, "a test"), {"a gate", {}, Spin{Nanos{1} << 60, gate}});
}

class FakeCuda : public testing::Test {
 protected:
  FakeCuda() {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    cudaSetDevice(0);
  }
  ~FakeCuda() override {
    gate_ = 1;
    cudaDeviceSynchronize();
    for (cudaStream_t stream : {first_, second_}) cudaStreamDestroy(stream);
    cudaEventDestroy(event_);
  }

  volatile std::uint32_t gate_ = 0;
  cudaStream_t first_ = create_stream();
  cudaStream_t second_ = create_stream();
  cudaEvent_t event_ = create_event();
};

TEST_F(FakeCuda, WorkBehindAGateRunsWhenTheHostOpensIt) {
  launch_gated(first_, &gate_);
  cudaEventRecord(event_, first_);
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  gate_ = 1;
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
}

TEST_F(FakeCuda, AnEventThatWasNeverRecordedHoldsNothingBack) {
  cudaStreamWaitEvent(second_, event_, cudaEventWaitDefault);
  launch_gated(first_, &gate_);
  cudaEventRecord(event_, first_);  // too late for the wait
  EXPECT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
}

TEST_F(FakeCuda, AWaitMeansTheLastRecordBeforeIt) {
  cudaEventRecord(event_, first_);
  launch_gated(first_, &gate_);
  cudaStreamWaitEvent(second_, event_, cudaEventWaitDefault);  // the first record
  cudaEventRecord(event_, first_);
  EXPECT_EQ(cudaStreamSynchronize(second_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);  // the second
}

TEST_F(FakeCuda, TimesAreThoseOfADeviceWithRoomForAll) {
  // Two kernels of 3 ms run side by side; a third of 2 ms waits for the second: 5 ms.
  cudaEvent_t begin = create_event();
  launch_gated(first_, &gate_);
  cudaEventRecord(begin, first_);
  cudaStreamWaitEvent(second_, begin, cudaEventWaitDefault);
  for (cudaStream_t stream : {first_, second_})
    put(stream_of(stream, "a test"), {"a kernel", {}, Spin{3'000'000, nullptr}});
  cudaEventRecord(event_, second_);
  cudaStreamWaitEvent(first_, event_, cudaEventWaitDefault);
  put(stream_of(first_, "a test"), {"a kernel", {}, Spin{2'000'000, nullptr}});
  cudaEventRecord(event_, first_);
  gate_ = 1;
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, event_), cudaSuccess);
  EXPECT_FLOAT_EQ(milliseconds, 5);
  cudaEventDestroy(begin);
}

TEST_F(FakeCuda, AGraphHasTheStreamsThatWereForkedAndJoined) {
  cudaEvent_t join = create_event();
  void* const memory = allocate();
  cudaStreamBeginCapture(first_, cudaStreamCaptureModeRelaxed);
  cudaEventRecord(event_, first_);
  cudaStreamWaitEvent(second_, event_, cudaEventWaitDefault);
  EXPECT_EQ(cudaMemsetAsync(memory, 7, kBytes, second_), cudaSuccess);
  cudaEventRecord(join, second_);
  EXPECT_EQ(cudaStreamWaitEvent(first_, join, cudaEventWaitDefault), cudaSuccess);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(first_, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  std::vector<char> got(kBytes, 0);
  cudaMemcpy(got.data(), memory, kBytes, cudaMemcpyDefault);
  EXPECT_NE(got[0], 7);  // nothing has run yet
  cudaGraphLaunch(executable, first_);
  cudaStreamSynchronize(first_);
  cudaMemcpy(got.data(), memory, kBytes, cudaMemcpyDefault);
  EXPECT_EQ(got, std::vector<char>(kBytes, 7));
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaEventDestroy(join);
  cudaFree(memory);
}

TEST_F(FakeCuda, AStreamThatIsNotJoinedSpoilsTheCapture) {
  void* const memory = allocate();
  cudaStreamBeginCapture(first_, cudaStreamCaptureModeRelaxed);
  cudaEventRecord(event_, first_);
  cudaStreamWaitEvent(second_, event_, cudaEventWaitDefault);
  cudaMemsetAsync(memory, 7, kBytes, second_);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(first_, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorCapturedEvent);
  cudaFree(memory);
}

TEST_F(FakeCuda, EventsAreExternalInCapturesAlone) {
  EXPECT_EQ(cudaEventRecordWithFlags(event_, first_, cudaEventRecordExternal),
            cudaErrorIllegalState);
}

TEST_F(FakeCuda, MemoryIsGuarded) {
  void* const memory = allocate();
  EXPECT_DEATH(cudaMemsetAsync(memory, 0, kBytes + 1, first_), "101 bytes from byte 0 of 100");
  EXPECT_DEATH(
      {
        std::memset(memory, 0, kBytes + 1);
        cudaFree(memory);
      },
      "somebody wrote beside 100 bytes");
  cudaFree(memory);
  EXPECT_DEATH(cudaFree(memory), "no memory of this kind begins here");
  EXPECT_DEATH(std::memset(memory, 0, 1), "");
  char on_host[4];
  EXPECT_DEATH(cudaMemsetAsync(on_host, 0, 4, first_), "neither a device's nor pinned");
}

TEST_F(FakeCuda, WhatIsNeverReleasedEndsTheProcessWithItsStatus) {
  EXPECT_EXIT(
      {
        allocate();
        std::exit(0);
      },
      testing::ExitedWithCode(98), "never released: 100 bytes of device 0");
}

TEST_F(FakeCuda, HandlesThatAreGoneAreRefused) {
  cudaEvent_t event = create_event();
  cudaEventDestroy(event);
  EXPECT_DEATH(cudaEventQuery(event), "none of the events in use");
}

}  // namespace
}  // namespace bubblescope::tests::fake_cuda
