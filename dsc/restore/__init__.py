"""Restored images: without noise, and with their missing pixels filled."""

from dsc.restore.config import EACH, TOGETHER, RestoreConfig
from dsc.restore.denoising import denoise, denoise_image, estimate_noise
from dsc.restore.inpainting import inpaint, inpaint_image
from dsc.restore.result import Restored
