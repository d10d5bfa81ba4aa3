# CMake's toolchain of pamir: C and C++ with MPI, compiled to WebAssembly by `pamir cc` and `pamir c++`, run by `pamir run`.
#   cmake -B build -DCMAKE_TOOLCHAIN_FILE=node_modules/pamir/include/cmake/pamir.cmake
# CMake 3.19 or later: a compiler may have arguments. PAMIR_CLANG of the environment names another clang, as for `pamir cc`.
cmake_minimum_required(VERSION 3.19)

# No platform of CMake is WASI; this one has no shared libraries either.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)

get_filename_component(PAMIR_CLI "${CMAKE_CURRENT_LIST_DIR}/../../dist/cli.js" ABSOLUTE)
find_program(PAMIR_NODE node REQUIRED)
set(CMAKE_C_COMPILER "${PAMIR_NODE}" "${PAMIR_CLI}" cc)
set(CMAKE_CXX_COMPILER "${PAMIR_NODE}" "${PAMIR_CLI}" c++)

set(CMAKE_EXECUTABLE_SUFFIX .wasm)
set(CMAKE_EXECUTABLE_SUFFIX_C .wasm)
set(CMAKE_EXECUTABLE_SUFFIX_CXX .wasm)

# Programs are those of this machine; libraries and headers are not.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# What find_package(MPI) gives to tests: ${MPIEXEC_EXECUTABLE} -n 4 $<TARGET_FILE:program>.
set(MPIEXEC_EXECUTABLE "${PAMIR_NODE};${PAMIR_CLI};run" CACHE STRING "pamir run")
set(CMAKE_CROSSCOMPILING_EMULATOR "${PAMIR_NODE}" "${PAMIR_CLI}" run -n 1 --no-labels)
