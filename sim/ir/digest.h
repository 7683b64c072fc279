// A digest of 64 bits over bytes. It detects accidents, such as a file that was cut, and not
// attacks. A change within one aligned word of eight bytes always changes it.
//
//   digest("abc")                    one value for all bytes
//   digest("c", digest("ab"))        continues: another value than digest("abc")
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bubblescope::inline sim {

/// `before` is the digest of what precedes the bytes. The same on all machines of one byte order.
std::uint64_t digest(std::string_view bytes, std::uint64_t before = 0);

/// 16 hexadecimal digits.
std::string digest_text(std::uint64_t digest);

}  // namespace bubblescope::inline sim
