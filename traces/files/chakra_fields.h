// Field numbers and node types of Chakra's et_def.proto (schema 0.0.4), for its writer and its
// reader.
#pragma once

#include <cstdint>

namespace bubblescope::traces::chakra {

inline constexpr std::uint32_t kMetadataVersion = 1;
inline constexpr std::uint32_t kMetadataAttribute = 2;

inline constexpr std::uint32_t kNodeId = 1;
inline constexpr std::uint32_t kNodeName = 2;
inline constexpr std::uint32_t kNodeType = 3;
inline constexpr std::uint32_t kControlDependencies = 4;
inline constexpr std::uint32_t kDataDependencies = 5;
inline constexpr std::uint32_t kDurationMicros = 7;
inline constexpr std::uint32_t kNodeAttribute = 10;

inline constexpr std::uint32_t kAttributeName = 1;
inline constexpr std::uint32_t kAttributeInt32 = 7;
inline constexpr std::uint32_t kAttributeInt64 = 9;
inline constexpr std::uint32_t kAttributeUint64 = 13;
inline constexpr std::uint32_t kAttributeSint32 = 15;
inline constexpr std::uint32_t kAttributeSint64 = 17;
inline constexpr std::uint32_t kAttributeBool = 27;
inline constexpr std::uint32_t kAttributeString = 29;

inline constexpr std::uint64_t kComputeNode = 4;
inline constexpr std::uint64_t kSendNode = 5;
inline constexpr std::uint64_t kReceiveNode = 6;
inline constexpr std::uint64_t kCollectiveNode = 7;

}  // namespace bubblescope::traces::chakra
