// gzip in memory: what files whose names end in .gz hold.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope {

/// Packs; the same content gives the same bytes. Throws Error (Fault::kMachine).
std::string gzip(std::string_view content);

/// Unpacks, also several members in a row. Throws Error that goes on after a file's name:
/// "is no gzip file", "is cut short", ...
std::string gunzip(std::string_view packed);

}  // namespace bubblescope
