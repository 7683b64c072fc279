// Reads and writes whole files, "-" for stdin and stdout; names ending in .gz are packed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace bubblescope::traces {

/// Receives the content of a file piece by piece.
using Sink = std::function<void(std::string_view piece)>;

/// Reads a whole file, "-" for stdin; what gzip has packed is unpacked, whatever its name, and so
/// are names ending in .gz. Throws Error.
std::string read_file(const std::string& path);

/// Returns the name of an input in messages: "stdin" for "-".
std::string name_input(const std::string& path);

/// Throws Error where a text begins as one in UTF-16 does, and says how to convert it.
void expect_no_utf16(std::string_view begin, const std::string& name);

/// Writes a whole file through a temporary one and a rename, so that no reader sees half of it;
/// "-" is stdout; names ending in .gz are packed. Throws Error: Fault::kUsage where the path cannot
/// be created, Fault::kMachine where the content cannot be written (disk full).
void write_file(const std::string& path, std::string_view content);

/// The same for content in pieces: `produce` is called once and writes to its sink.
void write_file(const std::string& path, const std::function<void(const Sink&)>& produce);

}  // namespace bubblescope::traces
