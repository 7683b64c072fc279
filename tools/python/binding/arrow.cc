// Fills in Arrow's structs. Each owns what it points to and frees it in its release().
#include "tools/python/binding/arrow.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tools/python/binding/arrow_abi.h"

namespace bubblescope::tools {

namespace nb = nanobind;

namespace {

constexpr std::int64_t kNullable = 2;  ///< ARROW_FLAG_NULLABLE

struct ColumnType {
  const char* name;
  const char* format;  ///< i: int32, s: int16, l: int64, u: text, b: bit
};

constexpr std::array<ColumnType, 11> kColumns{{{"rank", "i"},
                                               {"lane", "u"},
                                               {"op", "u"},
                                               {"kind", "u"},
                                               {"stage", "i"},
                                               {"microbatch", "i"},
                                               {"slice", "s"},
                                               {"start_ns", "l"},
                                               {"end_ns", "l"},
                                               {"slack_ns", "l"},
                                               {"critical", "b"}}};

void release_schema(ArrowSchema* schema) {
  for (std::int64_t at = 0; at < schema->n_children; ++at) {
    if (schema->children[at]->release != nullptr)
      schema->children[at]->release(schema->children[at]);
    delete schema->children[at];
  }
  delete[] schema->children;
  schema->release = nullptr;
}

ArrowSchema make_schema(const char* name, const char* format, std::int64_t flags) {
  return {format, name, nullptr, flags, 0, nullptr, nullptr, release_schema, nullptr};
}

int get_schema(ArrowArrayStream*, ArrowSchema* out) {
  *out = make_schema("", "+s", 0);
  out->children = new ArrowSchema*[kColumns.size()];
  for (const ColumnType& column : kColumns)
    out->children[out->n_children++] =
        new ArrowSchema(make_schema(column.name, column.format, kNullable));
  return 0;
}

/// The memory of one array, and of what it refers to.
struct ArrayContent {
  std::shared_ptr<const TimedStep> step;
  std::vector<std::vector<std::byte>> owned = {};
  std::vector<const void*> buffers = {};
  std::vector<ArrowArray> columns = {};
  std::vector<ArrowArray*> children = {};
};

void release_array(ArrowArray* array) {
  const std::unique_ptr<ArrayContent> content(static_cast<ArrayContent*>(array->private_data));
  for (ArrowArray* const child : content->children)
    if (child->release != nullptr) child->release(child);
  array->release = nullptr;
}

/// Hands the content over to an array that owns it.
ArrowArray make_array(std::unique_ptr<ArrayContent> content, std::int64_t rows,
                      std::int64_t nulls = 0) {
  for (ArrowArray& column : content->columns) content->children.push_back(&column);
  ArrowArray array{};
  array.length = rows;
  array.null_count = nulls;
  array.n_buffers = static_cast<std::int64_t>(content->buffers.size());
  array.buffers = content->buffers.data();
  array.n_children = static_cast<std::int64_t>(content->children.size());
  array.children = content->children.data();
  array.release = release_array;
  array.private_data = content.release();
  return array;
}

/// Makes the arrays of the columns of one step.
class Columns {
 public:
  explicit Columns(std::shared_ptr<const TimedStep> step)
      : step_(std::move(step)), rows_(step_->program.instructions.size()) {}

  /// Numbers that stay where they are; all rows are null where there are none.
  ArrowArray refer(const std::vector<Nanos>& values) const {
    if (values.size() != rows_) return copy<Nanos>([](std::size_t) { return 0; }, true);
    auto content = start();
    content->buffers = {nullptr, values.data()};
    return make_array(std::move(content), rows());
  }

  template <class Number, class Get>
  ArrowArray copy(Get get, bool is_null = false) const {
    auto content = start();
    std::vector<std::byte>& bytes = content->owned.emplace_back(rows_ * sizeof(Number));
    auto* const numbers = reinterpret_cast<Number*>(bytes.data());
    for (std::size_t at = 0; at < rows_; ++at) numbers[at] = get(at);
    content->buffers = {nullptr, numbers};
    if (is_null) content->buffers[0] = content->owned.emplace_back((rows_ + 7) / 8).data();
    return make_array(std::move(content), rows(), is_null ? rows() : 0);
  }

  /// Texts; rows for which `get` returns null are null.
  template <class Get>
  ArrowArray texts(Get get) const {
    auto content = start();
    std::vector<std::byte> valid((rows_ + 7) / 8);
    std::vector<std::byte> offsets((rows_ + 1) * sizeof(std::int32_t));
    std::vector<std::byte> letters;
    auto* const ends = reinterpret_cast<std::int32_t*>(offsets.data());
    std::int64_t nulls = 0;
    for (std::size_t at = 0; at < rows_; ++at) {
      const std::optional<std::string> text = get(at);
      if (text) {
        const auto* const first = reinterpret_cast<const std::byte*>(text->data());
        letters.insert(letters.end(), first, first + text->size());
        valid[at / 8] |= std::byte{1} << (at % 8);
      }
      nulls += text ? 0 : 1;
      ends[at + 1] = static_cast<std::int32_t>(letters.size());
    }
    letters.resize(letters.size() + 1);  // so that the pointer is never null
    content->owned = {std::move(valid), std::move(offsets), std::move(letters)};
    content->buffers = {content->owned[0].data(), content->owned[1].data(),
                        content->owned[2].data()};
    return make_array(std::move(content), rows(), nulls);
  }

  /// Returns a bit per row.
  ArrowArray bits(const std::vector<InstructionId>& set) const {
    auto content = start();
    std::vector<std::byte>& bytes = content->owned.emplace_back(rows_ / 8 + 1);
    for (const InstructionId id : set) bytes[id / 8] |= std::byte{1} << (id % 8);
    content->buffers = {nullptr, bytes.data()};
    return make_array(std::move(content), rows());
  }

  std::int64_t rows() const { return static_cast<std::int64_t>(rows_); }

 private:
  std::unique_ptr<ArrayContent> start() const {
    return std::make_unique<ArrayContent>(ArrayContent{step_});
  }

  std::shared_ptr<const TimedStep> step_;
  std::size_t rows_;
};

/// Returns the columns in the order of kColumns.
ArrowArray make_batch(const std::shared_ptr<const TimedStep>& step) {
  const std::vector<Instruction>& all = step->program.instructions;
  const Columns columns(step);
  const NamedColumn lanes = find_lane_names(step->program);
  auto content = std::make_unique<ArrayContent>(ArrayContent{step});
  using Text = std::optional<std::string>;
  content->columns = {
      columns.copy<std::int32_t>([&](std::size_t at) { return all[at].rank; }),
      columns.texts([&](std::size_t at) -> Text {
        if (lanes.codes[at] < 0) return std::nullopt;
        return lanes.names[static_cast<std::size_t>(lanes.codes[at])];
      }),
      columns.texts([&](std::size_t at) -> Text { return to_string(all[at].op); }),
      columns.texts([&](std::size_t at) -> Text { return std::string(code(all[at].op.kind)); }),
      columns.copy<std::int32_t>([&](std::size_t at) { return all[at].op.stage; }),
      columns.copy<std::int32_t>([&](std::size_t at) { return all[at].op.microbatch; }),
      columns.copy<std::int16_t>([&](std::size_t at) { return all[at].op.slice; }),
      columns.refer(step->timeline.start),
      columns.refer(step->timeline.end),
      columns.refer(step->report.slack),
      columns.bits(step->report.critical_path)};
  content->buffers = {nullptr};
  return make_array(std::move(content), columns.rows());
}

/// The batches that are left: the step, once.
struct StreamState {
  std::shared_ptr<const TimedStep> step;
};

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  auto* const state = static_cast<StreamState*>(stream->private_data);
  *out = {};
  if (!state->step) return 0;  // a released array is the end
  try {
    *out = make_batch(std::exchange(state->step, nullptr));
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

const char* get_last_error(ArrowArrayStream*) { return "out of memory"; }

void release_stream(ArrowArrayStream* stream) {
  delete static_cast<StreamState*>(stream->private_data);
  stream->release = nullptr;
}

void delete_stream(void* pointer) noexcept {
  auto* const stream = static_cast<ArrowArrayStream*>(pointer);
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

}  // namespace

nb::capsule make_arrow_stream(const PythonWholeStep& step) {
  auto stream = std::make_unique<ArrowArrayStream>(ArrowArrayStream{
      get_schema, get_next, get_last_error, release_stream, new StreamState{step.timed}});
  return nb::capsule(stream.release(), "arrow_array_stream", delete_stream);
}

}  // namespace bubblescope::tools
