// Compresses and decompresses gzip with zlib's streams.
#include "traces/files/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "sim/ir/bytes_text.h"
#include "sim/ir/error.h"
#include "traces/files/input_limit.h"

namespace bubblescope::traces {

namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's code for the largest window and a gzip header
constexpr int kLevel = 4;             // takes a third of the default's time for a fifth more bytes

/// A zlib stream over a whole input, which may be larger than zlib's 32-bit counters.
struct Stream : z_stream {
  explicit Stream(std::string_view input) : z_stream{}, rest(input) {}

  void refill() {
    if (avail_in > 0 || rest.empty()) return;
    const auto count = std::min<std::size_t>(rest.size(), std::numeric_limits<uInt>::max());
    next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));  // zlib only reads it
    avail_in = static_cast<uInt>(count);
    rest.remove_prefix(count);
  }
  bool has_input() const { return left() > 0; }
  std::size_t left() const { return avail_in + rest.size(); }

  std::string_view rest;
};

struct Deflate : Stream {
  explicit Deflate(std::string_view input) : Stream(input) {
    if (deflateInit2(this, kLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw Error(Fault::kMachine, "zlib does not start: out of memory");
  }
  ~Deflate() { deflateEnd(this); }
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;
};

struct Inflate : Stream {
  explicit Inflate(std::string_view input) : Stream(input) {
    if (inflateInit2(this, kGzipWindow) != Z_OK)
      throw Error(Fault::kMachine, "zlib does not start: out of memory");
  }
  ~Inflate() { inflateEnd(this); }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;
};

using Chunk = std::array<char, 1 << 16>;

/// Runs one step of a stream with the chunk as its output buffer, and appends the output.
template <class Step>
int run_step(Stream& stream, std::string& out, Step step) {
  Chunk chunk;
  stream.refill();
  stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
  stream.avail_out = static_cast<uInt>(chunk.size());
  const int status = step();
  out.append(chunk.data(), chunk.size() - stream.avail_out);
  return status;
}

}  // namespace

struct GzipWriter::State {
  explicit State(std::function<void(std::string_view)> to)
      : stream(std::string_view()), sink(std::move(to)) {}

  /// Runs until zlib has consumed all its input and written its output.
  void run(int flush) {
    int status = Z_OK;
    do {
      packed.clear();
      status = run_step(stream, packed,
                        [&] { return deflate(&stream, stream.rest.empty() ? flush : Z_NO_FLUSH); });
      if (!packed.empty()) sink(packed);
    } while (flush == Z_FINISH ? status != Z_STREAM_END : stream.has_input());
  }

  Deflate stream;
  std::function<void(std::string_view)> sink;
  std::string packed;
};

GzipWriter::GzipWriter(std::function<void(std::string_view packed)> sink)
    : state_(std::make_unique<State>(std::move(sink))) {}

GzipWriter::~GzipWriter() = default;

void GzipWriter::write(std::string_view content) {
  state_->stream.rest = content;
  state_->run(Z_NO_FLUSH);
}

void GzipWriter::finish() { state_->run(Z_FINISH); }

namespace {

std::string unpacks_too_far(std::size_t max_size) {
  return fmt::format(
      "unpacks to more than {}, which is the limit for its size; `max_input` SIZE raises it",
      format_bytes(static_cast<Bytes>(max_size)));
}

}  // namespace

bool is_gzip(std::string_view begin) { return begin.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view packed) {
  Inflate stream(packed);
  std::string content;
  for (;;) {
    const int status = run_step(stream, content, [&] { return inflate(&stream, Z_NO_FLUSH); });
    const std::size_t max_size = max_unpacked(packed.size() - stream.left());
    if (content.size() > max_size) throw Error(unpacks_too_far(max_size));
    if (status == Z_MEM_ERROR) throw Error(Fault::kMachine, "is too large to unpack in memory");
    if (status == Z_DATA_ERROR)
      throw Error(content.empty() ? "is not a gzip file; rename it or pack it"
                                  : "is damaged; create it again");
    if (status == Z_STREAM_END && !stream.has_input()) return content;
    if (status == Z_STREAM_END) inflateReset(&stream);
    if (status == Z_BUF_ERROR) throw Error("is truncated; copy it again");
  }
}

std::string gunzip_begin(std::string_view packed) {
  Inflate stream(packed);
  std::string content;
  run_step(stream, content, [&] { return inflate(&stream, Z_SYNC_FLUSH); });
  return content;
}

}  // namespace bubblescope::traces
