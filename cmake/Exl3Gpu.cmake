# Decides whether src/gpu is compiled, by what, and for which GPUs. Sets EXL3_CUDA.
#
# The runtime is linked statically and opens the driver's library when it is first used, so a program
# with kernels also runs where there is no GPU.
set(EXL3_CUDA OFF)
if(EXL3_GPU STREQUAL "CUDA" OR EXL3_GPU STREQUAL "AUTO")
  find_program(EXL3_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin PATHS /usr/local/cuda/bin /opt/cuda/bin)
  if(EXL3_NVCC)
    set(EXL3_CUDA ON)
  elseif(EXL3_GPU STREQUAL "CUDA")
    message(FATAL_ERROR "EXL3_GPU=CUDA: nvcc is not found; put it into PATH or set CUDA_HOME")
  endif()
elseif(NOT EXL3_GPU STREQUAL "OFF")
  message(FATAL_ERROR "EXL3_GPU: '${EXL3_GPU}' found, needed AUTO, OFF or CUDA")
endif()

if(EXL3_CUDA)
  set(exl3_archs "${EXL3_CUDA_ARCHS}")
  if(NOT exl3_archs)
    # The GPU of this machine, where there is one. sm_90's own instructions need the "a".
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE found ERROR_QUIET RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0 AND found MATCHES "^([0-9]+)\\.([0-9]+)")
      set(exl3_archs "${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
    endif()
    if(NOT exl3_archs OR exl3_archs STREQUAL "90")
      set(exl3_archs 90a)
    endif()
  endif()
  set(CMAKE_CUDA_COMPILER ${EXL3_NVCC})
  list(TRANSFORM exl3_archs APPEND "-real" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
  if(EXL3_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${EXL3_CCACHE})
  endif()
  enable_language(CUDA)
  message(STATUS "GPU backend: CUDA ${CMAKE_CUDA_COMPILER_VERSION} for ${exl3_archs}")
endif()

# exl3_find_gpu_sources(variable): none in a build without a GPU backend.
function(exl3_find_gpu_sources variable)
  set(found "")
  if(EXL3_CUDA)
    file(GLOB found CONFIGURE_DEPENDS src/gpu/*.cu src/gpu/*.cpp)
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# exl3_set_up_gpu(target): what src/gpu needs beside the settings of every layer.
function(exl3_set_up_gpu target)
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
  target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  # CMake 3.25 does not know how nvcc 13 spells C++20.
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;-Xcompiler=-Wall;-Xcompiler=-Wextra;-Xcompiler=-Wno-missing-field-initializers;-Xcompiler=-Wno-unused-parameter>"
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${EXL3_WERROR}>>:-Werror=all-warnings>"
    "$<$<COMPILE_LANGUAGE:CXX>:${EXL3_WARNINGS}>")
  target_compile_definitions(${target} PUBLIC EXL3_GPU_BACKEND)
endfunction()
