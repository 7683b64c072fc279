// Serialization: values are read as they were written, and truncated blobs are refused.
#include <gtest/gtest.h>

#include "exec/runtime/blob.h"
#include "exec/training/payload.h"
#include "sim/ir/error.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

TEST(Blob, IsReadInTheOrderOfWriting) {
  exec::BlobWriter writer;
  writer.write(std::int32_t{7});
  writer.write_text("1F3");
  writer.write_all(std::vector<double>{0.5, 2});
  const exec::Blob bytes = writer.take();
  exec::BlobReader reader(bytes);
  EXPECT_EQ(reader.read<std::int32_t>(), 7);
  EXPECT_EQ(reader.read_text(), "1F3");
  EXPECT_EQ(reader.read_all<double>(), (std::vector<double>{0.5, 2}));
  EXPECT_TRUE(reader.rest().empty());
}

TEST(Blob, TooFewBytesAreRefused) {
  exec::BlobWriter writer;
  writer.write_all(std::vector<double>{0.5, 2});
  exec::Blob bytes = writer.take();
  bytes.pop_back();
  exec::BlobReader reader(bytes);
  EXPECT_EQ(error_of([&] { reader.read_all<double>(); }),
            "there are fewer bytes than announced; they were damaged, or not all processes run "
            "the same program");
  const exec::Blob none;
  EXPECT_EQ(error_of([&] { exec::BlobReader(none).read_text(); }),
            "there are fewer bytes than announced; they were damaged, or not all processes run "
            "the same program");
}

TEST(Payload, ArrivesAsItWasSent) {
  exec::Matrix matrix(2, 3);
  matrix.values = {1, 2, 3, 4, 5, 6};
  const exec::Payload arrived = exec::unpack(exec::pack(exec::seal(matrix, Damage::kNone)));
  EXPECT_EQ(arrived.matrix, matrix);
  EXPECT_EQ(exec::find_damage(arrived, 2, 3), "");
}

TEST(Payload, TellsWhatIsWrongWithIt) {
  exec::Matrix matrix(2, 3);
  matrix.values = {1, 2, 3, 4, 5, 6};
  const auto damage = [](const exec::Blob& bytes) {
    return exec::find_damage(exec::unpack(bytes), 2, 3);
  };
  EXPECT_EQ(damage(exec::pack(exec::seal(matrix, Damage::kWrongSize))),
            "a wrong size: 3 x 3 entries instead of 2 x 3");
  EXPECT_EQ(damage(exec::pack(exec::seal(matrix, Damage::kGarbage))),
            "an invalid message: the payload does not match its checksum");
  exec::Blob short_of_one = exec::pack(exec::seal(matrix, Damage::kNone));
  short_of_one.pop_back();
  EXPECT_EQ(damage(short_of_one).find("a wrong size"), 0u);
  EXPECT_EQ(damage({}).find("a wrong size"), 0u);
  exec::Matrix swapped = matrix;
  std::swap(swapped.values[0], swapped.values[1]);
  EXPECT_EQ(damage(exec::pack({swapped, exec::seal(matrix, Damage::kNone).checksum})),
            "an invalid message: the payload does not match its checksum");
}

}  // namespace
}  // namespace bubblescope::tests
